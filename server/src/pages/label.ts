/** A style sheet, an icon or a logo of an operator, with the name that its address begins with. */
export type LabelFile = { readonly name: string; readonly bytes: Buffer }

export type LabelLink = { readonly title: string; readonly href: string }

/** Under whose name pages are shown: what an operator sets in place of our own. */
export type Label = {
  readonly name: string
  /** Stands in place of the mark and the name. Where there is none, another name stands for itself, as text. */
  readonly logo: LabelFile | null
  /** What browsers show beside the title; our own where left out. */
  readonly icon: LabelFile | null
  /** Colours in place of ours; a style sheet of its own, because no page may have styles of its own. */
  readonly styles: LabelFile | null
  readonly legal: readonly LabelLink[]
  readonly support: LabelLink | null
}

export const OWN_NAME = 'Farebox'

/** Our own. */
export const OWN_LABEL: Label = { name: OWN_NAME, logo: null, icon: null, styles: null, legal: [], support: null }
