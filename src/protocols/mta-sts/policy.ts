/** MTA-STS records and policies as text, read and written (RFC 8461 §3.1, §3.2, §4.1). Pure. */
import { createHash } from 'node:crypto'

export interface StsPolicy {
  mode: 'enforce' | 'testing' | 'none'
  /** Lower case; `*.example.com` stands for one label. */
  mx: readonly string[]
  maxAgeSeconds: number
}

/** About a year, the longest allowed (RFC 8461 §3.2). */
const MAX_AGE_SECONDS_MAX = 31_557_600
/** More mail hosts than any domain has; bounds the work per connection. */
const MX_MAX = 200

/** The id in a domain's `_mta-sts` TXT records; null unless exactly one of them is an STSv1 record. */
export function readStsRecord(texts: readonly string[]): string | null {
  const records = texts.filter((text) => /^v=STSv1\s*;/.test(text))
  const [record] = records
  if (record === undefined || records.length > 1) return null
  return /;\s*id\s*=\s*([A-Za-z0-9]{1,32})\s*(?:;|$)/.exec(record)?.[1] ?? null
}

/** The policy in a file, or why it is invalid. Unknown keys are ignored; the first of a repeated key counts. */
export function parseStsPolicy(text: string): StsPolicy | { invalid: string } {
  const mx: string[] = []
  const fields = new Map<string, string>()
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(0, colon)).trimEnd()
    const value = line.slice(colon + 1).trim()
    if (name === 'mx') mx.push(value.toLowerCase().replace(/\.$/, ''))
    else if (!fields.has(name)) fields.set(name, value)
  }
  const mode = fields.get('mode')
  const age = fields.get('max_age') ?? ''
  if (fields.get('version') !== 'STSv1') return { invalid: 'version is not STSv1' }
  if (mode !== 'enforce' && mode !== 'testing' && mode !== 'none') return { invalid: `mode is "${mode}"` }
  if (!/^\d{1,10}$/.test(age)) return { invalid: `max_age is "${age}"` }
  if (mode !== 'none' && mx.length === 0) return { invalid: 'it names no mx' }
  if (mx.length > MX_MAX) return { invalid: `it names over ${MX_MAX} mx` }
  return { mode, mx, maxAgeSeconds: Math.min(Number(age), MAX_AGE_SECONDS_MAX) }
}

/** The file of a policy; `parseStsPolicy` reads it back. */
export const stsPolicyText = ({ mode, mx, maxAgeSeconds }: StsPolicy): string =>
  [
    'version: STSv1',
    `mode: ${mode}`,
    ...(mode === 'none' ? [] : mx.map((host) => `mx: ${host}`)),
    `max_age: ${maxAgeSeconds}`,
    '',
  ].join('\r\n')

/** An id that is another one for another policy. */
export const stsPolicyId = (text: string): string =>
  createHash('sha256').update(text).digest('hex').slice(0, 32)

/** The record at `_mta-sts`, which tells senders that the policy is another one now. */
export const stsRecord = (id: string): string => `v=STSv1; id=${id}`

/** Whether the policy names this mail host. */
export function namesHost(policy: StsPolicy, host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  const parent = name.slice(name.indexOf('.') + 1)
  return policy.mx.some((pattern) =>
    pattern.startsWith('*.') ? pattern.slice(2) === parent : pattern === name,
  )
}
