/**
 * The fixed work that a message is compared with, in a process of its own: operations of the kinds that a message needs, in
 * none of our code. Changing it makes all figures of history.json void.
 */
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { serveHelper } from './helper-process.ts'

export interface Rounds {
  rounds: number
}

const LINE = 'the order you placed with us has been packed and will leave our house today\n'
const TEXT = LINE.repeat(130)
const EVENT = {
  id: 'event',
  values: Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`name-${at}`, LINE.slice(0, 2 * at)])),
}
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const fields = randomBytes(600)

let sum = 0

function round(): void {
  const body = Buffer.from(TEXT.replaceAll('\n', '\r\n'), 'latin1')
  sum += createHash('sha256').update(body).digest()[0] as number
  for (let at = 0; at < 4; at++) sum += JSON.stringify(JSON.parse(JSON.stringify(EVENT))).length
  sum += sign('sha256', fields, privateKey).length
}

/** CPU microseconds of one round. */
serveHelper<Rounds, number>(async ({ rounds }) => {
  const before = process.cpuUsage()
  for (let at = 0; at < rounds; at++) round()
  const { user, system } = process.cpuUsage(before)
  if (sum === 0) throw new Error('nothing was computed')
  return (user + system) / rounds
})
