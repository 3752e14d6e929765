/**
 * Brand Indicators for Message Identification: whether receivers would show the domain's logo, and what is missing
 * (own-operations.md section 13). Pure.
 */
import { type BimiRecord, isBimiRecord, readBimi } from '../../protocols/bimi/record.ts'
import { type DmarcPolicy, readDmarc } from '../../protocols/dns/dmarc.ts'
import type { BimiEvidence } from './bimi.ts'

/** TXT at `default._bimi` of the domain, or of its organization where the domain has none. */
export interface BimiTexts {
  at: string
  texts: readonly string[]
}

export interface BimiFinding {
  /** Null: the domain has no record, which it need not have, or it cannot be said. */
  passed: boolean | null
  sentence: string
}

interface DmarcOfDomain {
  record: string
  policy: DmarcPolicy | null
}

const failed = (sentence: string): BimiFinding => ({ passed: false, sentence })

/** The one record that can be used; else what is to be said. */
export function usableRecord({ at, texts }: BimiTexts): BimiRecord | BimiFinding {
  const [text, ...others] = texts.filter(isBimiRecord)
  const name = `default._bimi.${at}`
  if (text === undefined)
    return {
      passed: null,
      sentence: `There is no BIMI record at ${name}: receivers show no logo, which is optional.`,
    }
  if (others.length > 0) return failed(`There are several BIMI records at ${name}: leave one.`)
  const record = readBimi(text)
  if (record.logo === '' && record.certificate === '')
    return { passed: null, sentence: `The BIMI record at ${name} declines to have a logo.` }
  if (record.logo === '' || record.wrongTags.includes('l'))
    return failed('The BIMI record names no logo: l= must be an https URL of an SVG file.')
  if (record.wrongTags.includes('a'))
    return failed('The a= tag of the BIMI record must be an https URL of a mark certificate.')
  if (record.wrongTags.includes('avp')) return failed('avp= of the BIMI record must be brand or personal.')
  return record
}

/** `bimi`: null: DNS gave no answer. `evidence`: null: nothing was fetched, and the record alone is judged. */
export function judgeBimi(
  bimi: BimiTexts | null,
  dmarc: DmarcOfDomain,
  evidence: BimiEvidence | null,
): BimiFinding {
  if (bimi === null) return { passed: null, sentence: 'DNS gave no answer about the BIMI record.' }
  const record = usableRecord(bimi)
  if ('passed' in record) return record
  if (!isEnforced(dmarc))
    return failed(
      'Receivers show a logo only for domains whose DMARC policy is quarantine or reject, for all mail and all subdomains: change p= and sp=, and remove t= and pct=.',
    )
  return (
    (evidence && judgeEvidence(evidence)) ?? {
      passed: true,
      sentence:
        record.certificate === ''
          ? 'The BIMI record is complete. Gmail and Apple show the logo only with a mark certificate in a=.'
          : `The BIMI record is complete${evidence?.mark ? `, and its certificate is valid until ${evidence.mark.validTo?.slice(0, 10)}` : ''}.`,
    }
  )
}

/** Null: there is nothing to say. */
function judgeEvidence(evidence: BimiEvidence): BimiFinding | null {
  const { logoFaults, logoProblem, mark, markProblem, isUnsure } = evidence
  const passed = isUnsure ? null : false
  if (logoFaults === null) return { passed, sentence: `The logo in l= cannot be fetched: ${logoProblem}.` }
  const faults = [
    logoFaults.length > 0 && `the logo is not as receivers want it (SVG Tiny PS): ${logoFaults.join('; ')}`,
    mark !== null &&
      mark.faults.length > 0 &&
      `the mark certificate in a= is not accepted: ${mark.faults.join('; ')}`,
    markProblem !== '' && `the mark certificate in a= cannot be fetched: ${markProblem}`,
  ].filter((fault) => fault !== false)
  return faults.length === 0
    ? null
    : { passed, sentence: `The BIMI record is right, but ${faults.join('; and ')}.` }
}

/** Receivers of RFC 7489 apply pct= still. */
function isEnforced({ record, policy }: DmarcOfDomain): boolean {
  const read = readDmarc(record)
  const pct = /;\s*pct\s*=\s*(\d+)/i.exec(record)?.[1] ?? '100'
  return (
    read !== null &&
    policy !== null &&
    policy !== 'none' &&
    read.subdomainPolicy !== 'none' &&
    !read.isTesting &&
    pct === '100'
  )
}
