/**
 * `sendwright shaping check [FILE]`: says which limits a file gives, or names every fault in it. Without FILE it shows what
 * the running service has in force, or, if none runs, what it would.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { readConfig } from '../config.ts'
import { readShapingFile, ShapingFileError } from '../delivery/shaping/shaping-file.ts'
import {
  type LaneLimits,
  readShipped,
  type ShapingTable,
  shapingTable,
  shippedShaping,
} from '../delivery/shaping/shaping-table.ts'
import { createClient, NotReached } from './client.ts'
import { CommandError } from './usage.ts'

export const SHAPING_USAGE = `sendwright shaping check [FILE]
`

/** @throws CommandError naming the faults, for the exit status */
export async function shapingCommand([action, file, ...more]: string[]): Promise<void> {
  if (action !== 'check' || more.length > 0) throw new CommandError(SHAPING_USAGE, 2)
  const lines = file === undefined ? await inForce() : checked(resolve(file))
  process.stdout.write(`${lines.join('\n')}\n`)
}

function checked(file: string): string[] {
  return [`${file} has no fault.`, '', ...linesOf(tableOf(file))]
}

/** @throws CommandError */
function tableOf(file: string): ShapingTable {
  try {
    return shapingTable(readShipped(), readShapingFile(readFileSync(file, 'utf8'), readShipped()))
  } catch (error) {
    const faults = error instanceof ShapingFileError ? error.faults : [(error as Error).message]
    throw new CommandError(`${file} has faults:\n${faults.map((fault) => `  ${fault}`).join('\n')}`)
  }
}

async function inForce(): Promise<string[]> {
  const config = readConfig(process.env)
  const found = await askService(config.secret, config.dataFolder)
  if (found === null) {
    const { shapingFile: file } = config
    const whose = 'The service is not running; it would use '
    if (file === null) return [`${whose}the built-in limits.`, '', ...linesOf(shippedShaping())]
    return [`${whose}${file}.`, '', ...linesOf(tableOf(file))]
  }
  const { version, file, loaded_at, faults, default: common, providers } = found
  const head = `The running service uses version ${version}${file === null ? '' : ` of ${file}`}, loaded at ${loaded_at}.`
  if (faults.length > 0)
    throw new CommandError(
      `${head}\nThe file has changed since, and has faults:\n${faults.map((fault) => `  ${fault}`).join('\n')}`,
    )
  const rows = providers.map((one) => row(one.site, limitsOf(one), one.mx))
  return [head, '', HEADING, row('(others)', limitsOf(common), []), ...rows]
}

interface LimitsView {
  connections: number
  messages_per_connection: number
  messages_per_second: number | null
}

interface InForce {
  version: string
  file: string | null
  loaded_at: string
  faults: string[]
  default: LimitsView
  providers: (LimitsView & { site: string; mx: string[] })[]
}

const limitsOf = (view: LimitsView): LaneLimits => ({
  connections: view.connections,
  messagesPerConnection: view.messages_per_connection,
  messagesPerSecond: view.messages_per_second,
})

/** Null: none answers. */
async function askService(secret: string | null, dataFolder: string): Promise<InForce | null> {
  // Before the first start the client would create the secret that it signs in with.
  if (secret === null && !existsSync(join(dataFolder, 'secret'))) return null
  try {
    return (await createClient().call('GET', '/sendwright/v1/shaping')) as unknown as InForce
  } catch (error) {
    if (error instanceof NotReached) return null
    throw error
  }
}

const columns = (site: string, connections: string, perConnection: string, rate: string, mx: string) =>
  `  ${site.padEnd(18)} ${connections.padStart(11)} ${perConnection.padStart(15)} ${rate.padStart(10)}   ${mx}`
const HEADING = columns('site', 'connections', 'per connection', 'per second', 'MX hosts').trimEnd()

function row(site: string, limits: LaneLimits, mx: readonly string[]): string {
  const { connections, messagesPerConnection, messagesPerSecond } = limits
  const rate = messagesPerSecond === null ? '-' : String(Number(messagesPerSecond.toFixed(3)))
  return columns(site, String(connections), String(messagesPerConnection), rate, mx.join(' ')).trimEnd()
}

function linesOf(table: ShapingTable): string[] {
  return [
    `Version ${table.version}`,
    HEADING,
    row('(others)', table.default, []),
    ...table.sites.map(({ site, limits, mx }) => row(site, limits, mx)),
  ]
}
