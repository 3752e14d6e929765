/** Made by web/guides-plugin.ts. */
declare module 'virtual:guides' {
  import type { GuidePart } from '../../guides.ts'

  export interface Guide {
    slug: string
    title: string
    headings: readonly string[]
    load(): Promise<{ parts: readonly GuidePart[] }>
  }
  export const groups: readonly { name: string; guides: readonly Guide[] }[]
}

declare module 'virtual:guide-texts' {
  /** Words of each guide by its slug, in lower case. */
  export const texts: Readonly<Record<string, string>>
}
