import { readFileSync } from 'node:fs'
import path from 'node:path'
import { type Directive, parseSync, type Statement, type TSSignature, type TSType } from 'oxc-parser'

/** An object type of a library's declarations: its members, and where their types are to be looked up. */
export type ObjectType = {
  readonly key: string
  readonly members: ReadonlyMap<string, Declared>
}

/** A type as it is written, in the file and the namespace where that is. */
export type Declared = { readonly type: TSType; readonly file: string; readonly scope: readonly string[] }

type Declaration =
  | { readonly alias: TSType }
  | { readonly body: readonly TSSignature[]; readonly bases: readonly string[] }
type Named = { readonly declaration: Declaration; readonly file: string; readonly scope: readonly string[] }
type Module = {
  readonly declarations: ReadonlyMap<string, Named>
  readonly imports: ReadonlyMap<string, { readonly file: string; readonly name: string | undefined }>
}

/** Types that hold others of which each may stand there. */
const LISTS = ['Array', 'ReadonlyArray', 'Readonly', 'Partial']

/** Reads declarations as TypeScript writes them: interfaces, aliases, namespaces, and imports of the same library. */
export function createDeclaredTypes() {
  const modules = new Map<string, Module>()

  function moduleOf(file: string): Module {
    const known = modules.get(file) ?? readModule(file)
    modules.set(file, known)
    return known
  }

  /** A type by its name, from the innermost namespace outwards, then among the imports. */
  function find(name: string, file: string, scope: readonly string[] = []): Named | undefined {
    const { declarations, imports } = moduleOf(file)
    for (let depth = scope.length; depth >= 0; depth -= 1) {
      const found = declarations.get([...scope.slice(0, depth), name].join('.'))
      if (found !== undefined) return found
    }
    const [first = '', ...rest] = name.split('.')
    const imported = imports.get(first)
    if (imported === undefined) return undefined
    const inner = imported.name === undefined ? rest : [imported.name, ...rest]
    return find(inner.join('.'), imported.file)
  }

  /** Every object that may stand where a type is declared, through unions, lists and aliases. */
  function objectsOf({ type, file, scope }: Declared): readonly ObjectType[] {
    const inner = (one: TSType) => objectsOf({ type: one, file, scope })
    switch (type.type) {
      case 'TSUnionType':
      case 'TSIntersectionType':
        return type.types.flatMap(inner)
      case 'TSArrayType':
        return inner(type.elementType)
      case 'TSParenthesizedType':
      case 'TSTypeOperator':
        return inner(type.typeAnnotation)
      case 'TSTypeLiteral':
        return [{ key: `${file}:${type.start}`, members: membersIn(type.members, file, scope) }]
      case 'TSTypeReference': {
        const name = nameOf(type.typeName)
        if (LISTS.includes(name)) return (type.typeArguments?.params ?? []).flatMap(inner)
        return objectsNamed(name, file, scope)
      }
      default:
        return []
    }
  }

  function objectsNamed(name: string, file: string, scope: readonly string[] = []): readonly ObjectType[] {
    const found = find(name, file, scope)
    if (found === undefined) return []
    const { declaration } = found
    // The namespace of an interface is called like it, and holds what it alone needs.
    if ('alias' in declaration) return objectsOf({ type: declaration.alias, file: found.file, scope: found.scope })
    const members = new Map<string, Declared>()
    for (const base of declaration.bases) {
      for (const { members: inherited } of objectsNamed(base, found.file, found.scope))
        for (const [key, declared] of inherited) members.set(key, declared)
    }
    for (const [key, declared] of membersIn(declaration.body, found.file, found.scope)) members.set(key, declared)
    return [{ key: `${found.file}:${[...found.scope, name].join('.')}`, members }]
  }

  return { objectsOf, objectsNamed, find }
}

/** The texts that a type allows, where it is made of such. */
export function textsOf({ type }: Declared): readonly string[] {
  if (type.type === 'TSUnionType') return type.types.flatMap((one) => textsOf({ type: one, file: '', scope: [] }))
  if (type.type !== 'TSLiteralType' || type.literal.type !== 'Literal') return []
  return typeof type.literal.value === 'string' ? [type.literal.value] : []
}

function membersIn(body: readonly TSSignature[], file: string, scope: readonly string[]): Map<string, Declared> {
  const members = new Map<string, Declared>()
  for (const one of body) {
    if (one.type !== 'TSPropertySignature' || one.typeAnnotation === null) continue
    const name = one.key.type === 'Identifier' ? one.key.name : one.key.type === 'Literal' ? String(one.key.value) : ''
    members.set(name, { type: one.typeAnnotation.typeAnnotation, file, scope })
  }
  return members
}

function readModule(file: string): Module {
  const { program, module, errors } = parseSync(file, readFileSync(file, 'utf8'))
  if (errors.length > 0) throw new Error(`${file} does not parse: ${errors[0]?.message}`)
  const declarations = new Map<string, Named>()
  collect(program.body, file, [], declarations)
  const imports = new Map<string, { file: string; name: string | undefined }>()
  for (const { moduleRequest, entries } of module.staticImports) {
    if (!moduleRequest.value.startsWith('.')) continue
    const target = path.join(path.dirname(file), moduleRequest.value.replace(/\.([cm]?)js$/, '.d.$1ts'))
    for (const { importName, localName } of entries)
      imports.set(localName.value, {
        file: target,
        name: importName.kind === 'Name' ? (importName.name ?? '') : undefined,
      })
  }
  return { declarations, imports }
}

function collect(
  body: readonly (Statement | Directive)[],
  file: string,
  scope: readonly string[],
  declarations: Map<string, Named>,
): void {
  for (const statement of body) {
    const one =
      statement.type === 'ExportNamedDeclaration' && statement.declaration !== null ? statement.declaration : statement
    if (one.type === 'TSTypeAliasDeclaration') {
      const name = [...scope, one.id.name].join('.')
      declarations.set(name, { declaration: { alias: one.typeAnnotation }, file, scope: [...scope, one.id.name] })
    } else if (one.type === 'TSInterfaceDeclaration') {
      const bases = one.extends.flatMap(({ expression }) => (expression.type === 'Identifier' ? [expression.name] : []))
      const declaration = { body: one.body.body, bases }
      declarations.set([...scope, one.id.name].join('.'), { declaration, file, scope: [...scope, one.id.name] })
    } else if (one.type === 'TSModuleDeclaration' && one.id.type === 'Identifier' && one.body !== null) {
      collect(one.body.body, file, [...scope, one.id.name], declarations)
    }
  }
}

function nameOf(name: { readonly type: string } & Partial<Record<'left' | 'right' | 'name', unknown>>): string {
  if (name.type !== 'TSQualifiedName') return typeof name.name === 'string' ? name.name : ''
  return [name.left, name.right].map((one) => (isNamed(one) ? nameOf(one) : '')).join('.')
}

function isNamed(
  value: unknown,
): value is { readonly type: string } & Partial<Record<'left' | 'right' | 'name', unknown>> {
  return typeof value === 'object' && value !== null && 'type' in value
}
