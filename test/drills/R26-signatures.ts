/**
 * Signatures of delivered messages, and of generated messages with RSA, Ed25519 and both, verified by
 * two verifiers that share no code with ours: mailauth, which queries a real name server for the keys, and
 * dkimpy (Debian: python3-dkim and python3-nacl).
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import type { DrillReport } from '../../scripts/drill.ts'
import { generateDkimKey, publicRecord } from '../../src/protocols/dkim/key-material.ts'
import { type SigningKey, signMessage } from '../../src/protocols/dkim/sign.ts'
import { messageBytes } from '../../src/protocols/message/mime-message.ts'
import { composeMessage } from '../../src/protocols/mime/compose.ts'
import { createDnsServer } from '../support/dns-server.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'

export const title = 'R26: every signature verifies with two verifiers that are not ours'

const GENERATED = 2_000
const DELIVERED = 100
const DOMAIN = 'signed.example'

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const dns = await createDnsServer()
  const records: Records = new Map()
  try {
    const generated = await generate(folder, records)
    const delivered = await deliver(folder, records)
    const messages = [...generated, ...delivered]
    for (const [name, text] of records) dns.set(name, 'TXT', [text])
    const python = await withDkimpy(folder, records, messages)
    const npm = await withMailauth(dns, messages)
    report.figure('generated messages', generated.length)
    report.figure('delivered messages', delivered.length)
    report.figure('verified by dkimpy', python.passed)
    report.figure('verified by mailauth', npm.passed)
    assert.deepEqual([...python.failed, ...npm.failed].slice(0, 5), [])
    assert.equal(python.passed, messages.length)
    assert.equal(npm.passed, messages.length)
  } finally {
    await dns.close()
    await rm(folder, { recursive: true, force: true })
  }
}

/** Public keys by the name of their TXT record. */
type Records = Map<string, string>

interface Sample {
  file: string
  bytes: Buffer
  signatures: number
}

/** Messages that are hard to sign: 8-bit text, long and folded headers, empty bodies, trailing lines, dots. */
async function generate(folder: string, records: Records): Promise<Sample[]> {
  const key = async (selector: string, algorithm: 'rsa' | 'ed25519'): Promise<SigningKey> => {
    const made = await generateDkimKey(algorithm)
    records.set(`${selector}._domainkey.${DOMAIN}`, publicRecord(made))
    return { domain: DOMAIN, selector, ...made }
  }
  const rsa = await key('rsa', 'rsa')
  const ed25519 = await key('ed', 'ed25519')
  const choices = [[rsa], [ed25519], [rsa, ed25519]]
  const bodies = [
    '',
    '\n',
    '\n\n\n',
    'a  b\t c \n\n',
    '.\n..\n',
    'Zażółć gęślą jaźń 🎉\n',
    'x'.repeat(5000),
    randomBytes(3000).toString('base64'),
  ]
  const samples: Sample[] = []
  for (let index = 0; index < GENERATED; index++) {
    const keys = choices[index % choices.length] as SigningKey[]
    const text = `${bodies[index % bodies.length]}${index % 7 === 0 ? '' : index}`
    const message = composeMessage({
      headers: [
        ['From', `"Absender ${index} Größe" <sender@${DOMAIN}>`],
        [
          'To',
          Array.from({ length: 1 + (index % 30) }, (_, n) => `Nummer ${n} <user${n}@example.org>`).join(', '),
        ],
        ['Subject', `${'Betreff mit  Leerzeichen und Ümläuten '.repeat(1 + (index % 9))}${index}`],
        ['Date', 'Mon, 01 Jun 2026 12:00:00 +0000'],
        ['Message-Id', `<${index}@${DOMAIN}>`],
        ['List-Unsubscribe', `<https://example.org/u/${'y'.repeat(index % 400)}>, <mailto:u@${DOMAIN}>`],
        ['X-Other', ' spaces   inside \t and tabs '],
      ],
      text,
      ...(index % 2 === 0 && { html: `<p>${text}</p>` }),
      inline: [],
      attachments:
        index % 5 === 0
          ? [{ filename: 'a.bin', contentType: 'application/octet-stream', content: randomBytes(index) }]
          : [],
      utf8: false,
      boundarySeed: String(index),
    })
    const signatures = await signMessage(message, keys, { signedAt: new Date() })
    const bytes = await messageBytes({ headers: [...signatures, ...message.headers], body: message.body })
    samples.push(await keep(folder, `generated-${index}.eml`, bytes, keys.length))
  }
  return samples
}

async function keep(folder: string, name: string, bytes: Buffer, signatures: number): Promise<Sample> {
  const file = join(folder, name)
  await writeFile(file, bytes)
  return { file, bytes, signatures }
}

/** Messages as received from the running service. */
async function deliver(folder: string, records: Records): Promise<Sample[]> {
  const sink = await createSink({ host: ownAddress() })
  const service = await startProcess(ownAddress(), {
    SENDWRIGHT_DATA: join(folder, 'data'),
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
  })
  try {
    const headers = { authorization: AUTHORIZATION }
    const listed = await fetch(`${service.url}/v4/domains/${service.domain}/keys`, { headers })
    const { items } = (await listed.json()) as { items: { dns_record: { name: string; value: string } }[] }
    for (const { dns_record } of items) records.set(dns_record.name, dns_record.value)
    for (let index = 0; index < DELIVERED; index++) {
      const form = new FormData()
      form.set('from', `Größe <sender@${service.domain}>`)
      form.set('to', `user${index}@example.org`)
      form.set('subject', `Nachricht ${index} ${'ä'.repeat(index)}`)
      form.set('text', `${'Zeile  mit Leerzeichen \n'.repeat(index % 20)}`.padEnd(1, '.'))
      if (index % 3 === 0) form.append('attachment', new Blob([randomBytes(index * 1000)]), 'datei ä.bin')
      const answer = await fetch(`${service.url}/v3/${service.domain}/messages`, {
        method: 'POST',
        headers,
        body: form,
      })
      assert.equal(answer.status, 200)
    }
    const received = await sink.waitFor(DELIVERED)
    return Promise.all(received.map(({ raw }, index) => keep(folder, `delivered-${index}.eml`, raw, 1)))
  } finally {
    await service.end('SIGTERM')
    await sink.close()
  }
}

interface Verdict {
  passed: number
  failed: string[]
}

/** Number of files on one command line. */
const BATCH = 200

async function withDkimpy(folder: string, records: Records, samples: readonly Sample[]): Promise<Verdict> {
  const script = join(import.meta.dirname, '../support/dkim-verify.py')
  const recordFile = join(folder, 'records.json')
  await writeFile(recordFile, JSON.stringify(Object.fromEntries(records)))
  const expected = new Map(
    samples.map(({ file, signatures }) => [file, Array(signatures).fill('pass').join(',')]),
  )
  const failed: string[] = []
  let passed = 0
  for (let from = 0; from < samples.length; from += BATCH) {
    const files = samples.slice(from, from + BATCH).map(({ file }) => file)
    const { stdout, stderr, status } = await runProgram('/usr/bin/python3', [script, recordFile, ...files])
    assert.equal(status, 0, `dkimpy is needed (Debian: python3-dkim, python3-nacl)\n${stderr}`)
    for (const line of stdout.trim().split('\n')) {
      const [file = '', result = ''] = line.split(' ')
      if (result === expected.get(file)) passed++
      else failed.push(`dkimpy: ${line}`)
    }
  }
  return { passed, failed }
}

async function withMailauth(
  dns: { host: string; port: number },
  samples: readonly Sample[],
): Promise<Verdict> {
  const resolver = new Resolver()
  resolver.setServers([`${dns.host}:${dns.port}`])
  const failed: string[] = []
  let passed = 0
  for (const { file, bytes, signatures } of samples) {
    const { results } = await dkimVerify(bytes, { resolver: (name: string) => resolver.resolveTxt(name) })
    const verdict = results.map((result) => result.status?.result)
    if (verdict.length === signatures && verdict.every((one) => one === 'pass')) passed++
    else failed.push(`mailauth: ${file} ${verdict}`)
  }
  return { passed, failed }
}

async function runProgram(command: string, args: string[]) {
  return new Promise<{ stdout: string; stderr: string; status: number }>((resolve) => {
    execFile(command, args, { maxBuffer: 10_000_000 }, (error, stdout, stderr) => {
      resolve({ stdout, stderr, status: error ? 1 : 0 })
    })
  })
}
