/** A node of a plan, as `explain (format json)` tells it. */
type Node = Readonly<Record<string, unknown>>

/** It and all below it. */
export function nodesOf(node: Node): Node[] {
  return [node, ...((node.Plans ?? []) as Node[]).flatMap(nodesOf)]
}
