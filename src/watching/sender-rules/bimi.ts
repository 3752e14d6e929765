/**
 * Brand Indicators for Message Identification: whether receivers would show the domain's logo, and what is missing. The
 * record is at `default._bimi`; the logo is not fetched. Pure.
 */
export interface BimiFinding {
  /** Null: the domain has no record, which it need not have. */
  passed: boolean | null
  sentence: string
}

/** `records`: TXT at `default._bimi`. `dmarc`: the domain's DMARC record, '' without one. */
export function judgeBimi(domain: string, records: readonly string[], dmarc: string): BimiFinding {
  const own = records.filter((text) => /^v\s*=\s*BIMI1\s*(?:;|$)/i.test(text))
  const [record] = own
  const name = `default._bimi.${domain}`
  if (record === undefined)
    return {
      passed: null,
      sentence: `There is no BIMI record at ${name}: receivers show no logo, which is optional.`,
    }
  if (own.length > 1)
    return { passed: false, sentence: `There are several BIMI records at ${name}: leave one.` }
  const tags = tagsOf(record)
  const logo = tags.get('l') ?? ''
  if (!isHttps(logo))
    return {
      passed: false,
      sentence: `The BIMI record names no logo: l= must be an https URL of an SVG file.`,
    }
  const evidence = tags.get('a') ?? ''
  if (evidence !== '' && !isHttps(evidence))
    return {
      passed: false,
      sentence: 'The a= tag of the BIMI record must be an https URL of a mark certificate.',
    }
  const policy = tagsOf(dmarc)
  const isEnforced =
    ['quarantine', 'reject'].includes((policy.get('p') ?? '').toLowerCase()) &&
    (policy.get('pct') ?? '100') === '100'
  if (!isEnforced)
    return {
      passed: false,
      sentence:
        'Receivers show a logo only for domains whose DMARC policy is quarantine or reject, for all mail: change p= and remove pct=.',
    }
  return evidence === ''
    ? {
        passed: true,
        sentence:
          'The BIMI record is complete. Gmail and Apple show the logo only with a mark certificate in a=.',
      }
    : { passed: true, sentence: 'The BIMI record is complete.' }
}

/** `name=value` parts of a record, by name in lower case. */
export function tagsOf(record: string): Map<string, string> {
  return new Map(
    record.split(';').flatMap((part) => {
      const equals = part.indexOf('=')
      return equals > 0
        ? [[part.slice(0, equals).trim().toLowerCase(), part.slice(equals + 1).trim()] as const]
        : []
    }),
  )
}

const isHttps = (text: string) => /^https:\/\//i.test(text) && URL.canParse(text)
