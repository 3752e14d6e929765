import { groups } from 'virtual:guides'

export type Guide = (typeof groups)[number]['guides'][number]

export const guideOf = (slug: string): Guide | undefined =>
  groups.flatMap(({ guides }) => guides).find((guide) => guide.slug === slug)

/**
 * Groups with the guides that have all words of `text`.
 * @param texts words of each guide; undefined: only titles and headings are searched
 */
export function searchGuides(
  text: string,
  texts?: Readonly<Record<string, string>>,
): { name: string; guides: readonly Guide[] }[] {
  const words = text
    .toLowerCase()
    .split(/[\s"'`(),;:|<>]+/)
    .filter(Boolean)
  const matches = ({ slug, title, headings }: Guide) => {
    const searched = texts?.[slug] ?? [title, ...headings].join('\n').toLowerCase()
    return words.every((word) => searched.includes(word))
  }
  return groups
    .map(({ name, guides }) => ({ name, guides: guides.filter(matches) }))
    .filter(({ guides }) => guides.length > 0)
}
