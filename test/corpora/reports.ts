/**
 * DMARC and TLS reports as receivers send them (the folder "samples" of the project parsedmarc). What the service reads must
 * equal what Python reads by means of its own (reports.py): rows, messages, and messages by disposition, alignment and source.
 * A file that is no mail is put into one. Of the failure reports (RFC 6591) the service reads none.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { readMail } from '../../src/mail/accept/received-mail.ts'
import { NoReport } from '../../src/protocols/message/report-mail.ts'
import { type Payload, readPayload } from '../../src/receiving/domain-reports/payload.ts'

type Sums = Record<string, number | string>

export async function run(folder: string, print: (line: string) => void): Promise<boolean> {
  const script = join(import.meta.dirname, 'reports.py')
  const lines = execFileSync('python3', [script, folder], { encoding: 'utf8' }).trim().split('\n')
  const counts = { equal: 0, none: 0, different: 0 }
  for (const { file, report } of lines.map((line): { file: string; report: Sums | null } =>
    JSON.parse(line),
  )) {
    const read = await sumsOf(join(folder, file))
    if (typeof read !== 'string' && isDeepStrictEqual(read, report)) counts.equal++
    else if (typeof read === 'string' && report === null) counts.none++
    else {
      counts.different++
      print(`${file}\n  expected ${JSON.stringify(report)}\n  read     ${JSON.stringify(read)}`)
    }
  }
  print(`${counts.equal} reports are equal, ${counts.none} files have none, ${counts.different} differ`)
  return counts.different === 0
}

/** Why there is no report, or what it says. */
async function sumsOf(path: string): Promise<Sums | string> {
  const content = readFileSync(path)
  try {
    const payload = await readPayload(await readMail(path.endsWith('.eml') ? content : mailWith(content)))
    return payload.type === 'dmarc' ? dmarcSums(payload.report) : tlsSums(payload.report)
  } catch (error) {
    if (error instanceof NoReport) return error.message
    throw error
  }
}

const mailWith = (content: Buffer): Buffer =>
  Buffer.from(
    `Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\n${content.toString('base64')}`,
  )

function dmarcSums({ domain, reportId, rows }: (Payload & { type: 'dmarc' })['report']): Sums {
  const sums: Record<string, number> = {}
  const add = (key: string, amount: number) => {
    sums[key] = (sums[key] ?? 0) + amount
  }
  for (const { count, disposition, dkim, spf, sourceIp } of rows) {
    add('rows', 1)
    for (const key of ['messages', disposition, `source ${sourceIp}`]) add(key, count)
    if (dkim) add('dkim', count)
    if (spf) add('spf', count)
  }
  return { domain, id: reportId, ...sums }
}

function tlsSums({ reportId, policies }: (Payload & { type: 'tls' })['report']): Sums {
  const failures = policies.flatMap((policy) => policy.failures)
  const sum = (numbers: number[]) => numbers.reduce((total, one) => total + one, 0)
  return {
    ...{ domain: policies.map(({ domain }) => domain).join(','), id: reportId },
    successful: sum(policies.map(({ successful }) => successful)),
    failed: sum(policies.map(({ failed }) => failed)),
    failures: failures.length,
    'failed in detail': sum(failures.map(({ sessions }) => sessions)),
  }
}
