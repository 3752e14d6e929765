/**
 * The test suite of RFC 7208 (openspf.org, the file "rfc7208-tests.yml" that comes with pyspf), run against `spfPermits`. That
 * answers for an address, not for a mail: what depends on the sender, on macros, "exists" or "ptr" is left out.
 */
import { execFileSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import type { DnsAnswer, Resolver } from '../../src/protocols/dns/resolver.ts'
import { parseSpf, type SpfTerm } from '../../src/protocols/dns/spf.ts'
import { type SpfVerdict, spfPermits } from '../../src/protocols/dns/spf-permits.ts'

type Entry = string | Record<string, unknown>
interface Scenario {
  description: string
  tests: Record<string, { host: string; helo: string; mailfrom: string; result: string | string[] }>
  zonedata: Record<string, Entry[]>
}

const READ_YAML =
  'import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1], encoding="utf-8")))))'

const VERDICTS: Readonly<Record<string, SpfVerdict>> = {
  ...{ pass: 'permits', fail: 'refuses', softfail: 'refuses', neutral: 'refuses' },
  ...{ none: 'none', permerror: 'none', temperror: 'unknown' },
}

export async function run(folder: string, print: (line: string) => void): Promise<boolean> {
  const [file] = globSync('**/rfc7208-tests.yml', { cwd: folder })
  if (file === undefined) throw new Error(`no rfc7208-tests.yml below ${folder}`)
  const json = execFileSync('python3', ['-c', READ_YAML, join(folder, file)], { encoding: 'utf8' })
  const scenarios = (JSON.parse(json) as (Scenario | null)[]).filter((one) => one !== null)
  const counts = { right: 0, out: 0, wrong: 0 }
  for (const { description, tests, zonedata } of scenarios) {
    const zone = new Map(Object.entries(zonedata).map(([name, entries]) => [name.toLowerCase(), entries]))
    for (const [name, { host, helo, mailfrom, result }] of Object.entries(tests)) {
      const walk = { usesMail: false }
      const domain = mailfrom.includes('@') ? mailfrom.slice(mailfrom.lastIndexOf('@') + 1) : mailfrom || helo
      const verdict = await spfPermits(resolverOf(zone, walk), domain, host)
      const expected = [result].flat().map((word) => VERDICTS[word])
      if (expected.includes(verdict)) counts.right++
      else if (walk.usesMail) counts.out++
      else {
        counts.wrong++
        print(`${description}: ${name}: expected ${expected.join(' or ')}, is ${verdict}`)
      }
    }
  }
  print(`${counts.right} are right, ${counts.out} depend on what is left out, ${counts.wrong} are wrong`)
  return counts.wrong === 0
}

const dependsOnMail = ({ name, value }: SpfTerm) => name === 'exists' || name === 'ptr' || value.includes('%')

/** Answers from the zone of a scenario; notes whether a record that was read depends on more than the address. */
function resolverOf(
  zone: ReadonlyMap<string, Entry[]>,
  walk: { usesMail: boolean },
): Pick<Resolver, 'query'> {
  const query = async (name: string, type: string) => {
    const answer = (kind: string, records: unknown[] = []) =>
      ({ kind, records }) as unknown as DnsAnswer<'TXT'>
    const entries = zone.get(name.replace(/\.$/, '').toLowerCase())
    if (entries === undefined) return answer(name.startsWith('error.') ? 'timeout' : 'nxdomain')
    const alias = entries.find((entry) => typeof entry !== 'string' && 'CNAME' in entry) as Record<
      string,
      string
    >
    if (alias) return query(String(alias['CNAME']), type)
    const values = (of: string) =>
      entries.flatMap((entry) => (typeof entry === 'string' ? [] : of in entry ? [entry[of]] : []))
    const given = values(type)
    // The suite writes SPF for what is published as TXT, unless a name has its own TXT.
    const published = type === 'TXT' && given.length === 0 ? values('SPF') : given
    const found = published.filter((value) => value !== 'NONE')
    if (found.includes('TIMEOUT') || (found.length === 0 && entries.includes('TIMEOUT')))
      return answer('timeout')
    const records = found.map((value) => recordOf(type, value))
    if (type === 'TXT' && records.some((text) => parseSpf(String(text)).some(dependsOnMail)))
      walk.usesMail = true
    return answer(records.length > 0 ? 'records' : 'nodata', records)
  }
  return { query: query as Resolver['query'] }
}

function recordOf(type: string, value: unknown): unknown {
  if (type === 'MX')
    return { preference: (value as [number, string])[0], exchange: (value as [number, string])[1] }
  return Array.isArray(value) ? value.join('') : value
}
