/** Languages of pages and mails for people who have no account here. */

export const LANGUAGES = ['en', 'de', 'fr', 'es', 'it', 'nl', 'pl', 'pt'] as const
export type Language = (typeof LANGUAGES)[number]

/** A language by its tag, with or without region (`pt-BR`); null: none of ours. */
export function languageOf(tag: string): Language | null {
  const primary = tag.trim().toLowerCase().split('-', 1)[0]
  return LANGUAGES.find((language) => language === primary) ?? null
}

/** Ranges that are looked at: a browser sends a few. */
const RANGES_MAX = 20

/** The first of our languages that an Accept-Language field prefers, by weight (RFC 9110 §12.5.4). */
export function preferredLanguage(field: string | undefined, otherwise: Language): Language {
  const ranges = (field ?? '').split(',', RANGES_MAX).map((part) => {
    const [tag = '', ...parameters] = part.split(';')
    const weight = parameters.map((text) => /^\s*q=([01](?:\.\d{0,3})?)\s*$/i.exec(text)?.[1]).find(Boolean)
    return { language: languageOf(tag), weight: weight === undefined ? 1 : Number(weight) }
  })
  const best = ranges
    .filter(({ language, weight }) => language !== null && weight > 0)
    .sort((a, b) => b.weight - a.weight)[0]
  return best?.language ?? otherwise
}
