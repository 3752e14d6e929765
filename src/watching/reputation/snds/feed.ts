/**
 * Automated data access of Microsoft SNDS: two CSV files without a header, at URLs with a key. Pure, but for the requests.
 *
 * - `data.aspx?key=K&date=MMDDYY`: a line for each address that sent to Outlook.com on that day.
 * - `ipStatus.aspx?key=K`: ranges of addresses, whether they are blocked, and why.
 *
 * Left out: sample HELO and MAIL FROM, which would show one account what another has sent from a shared address.
 */
import { CsvSyntaxError, readCsv } from '../../../base/csv.ts'
import { canonicalIp } from '../../../base/net/ip.ts'
import { printableLine } from '../../../base/printable.ts'
import type { Clock } from '../../../base/time/clock.ts'
import type { HttpClient } from '../../../platform/posts/http-client.ts'
import { answered, SourceFailure, type StatusWords } from '../source-failure.ts'
import type { SndsCredentials } from '../sources.ts'

export interface SndsDay {
  ip: string
  recipients: number
  /** GREEN, YELLOW, RED. */
  filterResult: string
  /** As written: `< 0.1%`, `2.3%`. */
  complaintRate: string
  trapHits: number
  /** As written; empty: no hits. */
  trapPeriod: string
}

export interface SndsBlock {
  firstIp: string
  lastIp: string
  detail: string
}

/** About 30,000 addresses. */
const RESPONSE_BYTES = 4 * 1024 * 1024
const TIME_MAX_MS = 30_000
const ROWS_MAX = 10_000
const TEXT_LENGTH_MAX = 200
const DAY_COLUMNS = 14
const BLOCK_COLUMNS = 4

const WORDS: StatusWords = {
  who: 'SNDS',
  login: 'SNDS does not accept the key: copy the one that its page Automated Data Access shows now.',
  denied: 'SNDS denies access: automated data access is switched off, or the key was replaced.',
  missing: 'SNDS knows no such key or address: copy the link that its page Automated Data Access shows now.',
}

export function openSnds(
  parts: { client: Pick<HttpClient, 'send'>; clock: Clock; signal: AbortSignal },
  { settings, secrets }: SndsCredentials,
) {
  const { client, clock, signal } = parts

  async function rowsAt(file: string, fields: Record<string, string>, columns: number): Promise<string[][]> {
    signal.throwIfAborted()
    const query = new URLSearchParams({ key: secrets.key, ...fields })
    const outcome = await client.send({
      url: `${settings.api_url.replace(/\/+$/, '')}/${file}?${query}`,
      ...{ method: 'GET', responseBytes: RESPONSE_BYTES, totalMs: TIME_MAX_MS },
    })
    const { body, contentType } = answered(outcome, WORDS, clock.now())
    if (/html/i.test(contentType))
      throw new SourceFailure('login', `SNDS has answered with a page instead of data. ${WORDS.login}`)
    if (body.byteLength >= RESPONSE_BYTES)
      throw new SourceFailure('malformed', `SNDS has answered with more than ${RESPONSE_BYTES} bytes.`)
    return csvRows(body, columns)
  }

  return {
    /** @throws SourceFailure */
    async day(day: number): Promise<SndsDay[]> {
      return daysIn(await rowsAt('data.aspx', { date: sndsDate(day) }, DAY_COLUMNS))
    },
    /** Blocked ranges. @throws SourceFailure */
    async blocks(): Promise<SndsBlock[]> {
      return blocksIn(await rowsAt('ipStatus.aspx', {}, BLOCK_COLUMNS))
    },
  }
}

/** MMDDYY. */
export const sndsDate = (day: number): string => {
  const [year = '', month = '', date = ''] = new Date(day).toISOString().slice(0, 10).split('-')
  return `${month}${date}${year.slice(2)}`
}

/** @throws SourceFailure for what is no CSV of that many columns */
export async function csvRows(body: Uint8Array, columns: number): Promise<string[][]> {
  const rows: string[][] = []
  try {
    for await (const row of readCsv(piecesOf(body))) {
      if (row.length < columns) throw malformed()
      rows.push(row.map((field) => printableLine(field.trim()).slice(0, TEXT_LENGTH_MAX)))
      if (rows.length === ROWS_MAX) break
    }
  } catch (error) {
    throw error instanceof CsvSyntaxError ? malformed() : error
  }
  return rows
}

async function* piecesOf(body: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < body.byteLength; at += PIECE_BYTES) {
    yield body.subarray(at, at + PIECE_BYTES)
    // A large file must not hold up the main thread.
    await new Promise(setImmediate)
  }
}
const PIECE_BYTES = 64 * 1024

const malformed = () =>
  new SourceFailure('malformed', "SNDS's answer cannot be read: it is not the CSV that it documents.")

/**
 * Columns: address, begin and end of activity, RCPT commands, DATA commands, recipients, filter result, complaint rate, begin
 * and end of trap hits, their number, sample HELO, sample MAIL FROM, comments. The last line of an address counts.
 */
export function daysIn(rows: readonly (readonly string[])[]): SndsDay[] {
  const days = new Map<string, SndsDay>()
  for (const row of rows) {
    const ip = canonicalIp(row[0] ?? '')
    if (ip === null) throw malformed()
    const [from = '', to = ''] = [row[8], row[9]]
    days.set(ip, {
      ip,
      recipients: countIn(row[5]),
      filterResult: (row[6] ?? '').toUpperCase(),
      complaintRate: row[7] ?? '',
      trapHits: countIn(row[10]),
      trapPeriod: from === '' && to === '' ? '' : `${from} - ${to}`,
    })
  }
  return [...days.values()]
}

const COUNT_MAX = 1_000_000_000

const countIn = (text = '') => {
  const count = Number.parseInt(text.replaceAll(',', ''), 10)
  return Number.isNaN(count) ? 0 : Math.min(Math.max(count, 0), COUNT_MAX)
}

/** Columns: first and last address, whether they are blocked, why. */
export function blocksIn(rows: readonly (readonly string[])[]): SndsBlock[] {
  const blocks = new Map<string, SndsBlock>()
  for (const [first = '', last = '', blocked = '', detail = ''] of rows) {
    const [firstIp, lastIp] = [canonicalIp(first), canonicalIp(last)]
    if (firstIp === null || lastIp === null) throw malformed()
    if (/^yes$/i.test(blocked)) blocks.set(`${firstIp} ${lastIp}`, { firstIp, lastIp, detail })
  }
  return [...blocks.values()]
}

/** A complaint rate as written, from 0 to 1; `< 0.1%` counts as 0.1 %. Null: none can be read. */
export function complaintRateOf(text: string): number | null {
  const percent = /(\d+(?:\.\d+)?)\s*%/.exec(text)?.[1]
  return percent === undefined ? null : Number(percent) / 100
}
