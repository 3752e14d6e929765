/**
 * `sendwright shaping check [FILE]`: says which limits a file gives, or names every fault in it. Without FILE it shows what
 * the running service has in force, or, if none runs, what it would.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { readShapingFile, ShapingFileError } from '../mail/deliver/shaping/shaping-file.ts'
import {
  type LaneLimits,
  readShipped,
  type ShapingTable,
  shapingTable,
  shippedShaping,
} from '../mail/deliver/shaping/shaping-table.ts'
import { readConfig } from '../platform/config/config.ts'
import { askIfRunning, type ServiceClient } from './local/client.ts'
import { CommandError, parseWords, switches, wrongArguments } from './usage.ts'

export const usage = `sendwright shaping check [FILE] [--json]
`

interface LimitsView {
  connections: number
  messages_per_connection: number
  messages_per_second: number | null
}

/** What `--json` prints; a part of what `GET /sendwright/v1/shaping` answers. */
interface Limits {
  version: string
  /** Null: the built-in limits alone. */
  file: string | null
  /** Null: the service does not run, or another file was checked. */
  loaded_at: string | null
  /** Set for a file that changed after it was loaded. */
  faults: string[]
  default: LimitsView
  providers: (LimitsView & { site: string; mx: readonly string[] })[]
}

/** @throws CommandError naming the faults, for the exit status */
export async function run(args: string[]): Promise<void> {
  const { values, positionals } = parseWords('shaping', args, switches('json'))
  const [action, file, ...more] = positionals
  if (action !== 'check' || more.length > 0)
    throw wrongArguments('shaping', 'Say "check", and one file at most')
  const { head, limits } = file === undefined ? await inForce() : checked(resolve(file))
  if (values.json) process.stdout.write(`${JSON.stringify(limits)}\n`)
  if (limits.faults.length > 0)
    throw new CommandError(
      `${head}\nThe file has changed since, and has faults:\n${limits.faults.map((fault) => `  ${fault}`).join('\n')}`,
    )
  if (!values.json) process.stdout.write(`${[head, '', ...linesOf(limits)].join('\n')}\n`)
}

interface Found {
  /** Whose limits they are. */
  head: string
  limits: Limits
}

const checked = (file: string): Found => ({
  head: `${file} has no fault.`,
  limits: viewOf(tableOf(file), file),
})

/** @throws CommandError */
function tableOf(file: string): ShapingTable {
  try {
    return shapingTable(readShipped(), readShapingFile(readFileSync(file, 'utf8'), readShipped()))
  } catch (error) {
    const faults = error instanceof ShapingFileError ? error.faults : [(error as Error).message]
    throw new CommandError(`${file} has faults:\n${faults.map((fault) => `  ${fault}`).join('\n')}`)
  }
}

async function inForce(): Promise<Found> {
  const config = readConfig(process.env)
  const limits = await askIfRunning(config, inService)
  if (limits !== null) {
    const { version, file, loaded_at } = limits
    const whose = file === null ? '' : ` of ${file}`
    return { head: `The running service uses version ${version}${whose}, loaded at ${loaded_at}.`, limits }
  }
  const { shapingFile: file } = config
  return {
    head: `The service is not running; it would use ${file ?? 'the built-in limits'}.`,
    limits: viewOf(file === null ? shippedShaping() : tableOf(file), file),
  }
}

const viewOf = (table: ShapingTable, file: string | null): Limits => ({
  version: table.version,
  file,
  loaded_at: null,
  faults: [],
  default: limitsView(table.default),
  providers: table.sites.map(({ site, limits, mx }) => ({ site, ...limitsView(limits), mx })),
})

const limitsView = (limits: LaneLimits): LimitsView => ({
  connections: limits.connections,
  messages_per_connection: limits.messagesPerConnection,
  messages_per_second: limits.messagesPerSecond,
})

const partOf = ({ connections, messages_per_connection, messages_per_second }: LimitsView): LimitsView => ({
  connections,
  messages_per_connection,
  messages_per_second,
})

async function inService(client: ServiceClient): Promise<Limits> {
  const answer = (await client.call('GET', '/sendwright/v1/shaping')) as unknown as Limits
  const { version, file, loaded_at, faults, default: common, providers } = answer
  const rows = providers.map((one) => ({ site: one.site, ...partOf(one), mx: one.mx }))
  return { version, file, loaded_at, faults, default: partOf(common), providers: rows }
}

const columns = (site: string, connections: string, perConnection: string, rate: string, mx: string) =>
  `  ${site.padEnd(18)} ${connections.padStart(11)} ${perConnection.padStart(15)} ${rate.padStart(10)}   ${mx}`
const HEADING = columns('site', 'connections', 'per connection', 'per second', 'MX hosts').trimEnd()

function row(site: string, limits: LimitsView, mx: readonly string[]): string {
  const { connections, messages_per_connection: perConnection, messages_per_second: perSecond } = limits
  const rate = perSecond === null ? '-' : String(Number(perSecond.toFixed(3)))
  return columns(site, String(connections), String(perConnection), rate, mx.join(' ')).trimEnd()
}

/** The head names the version where it was loaded. */
function linesOf({ version, loaded_at, default: common, providers }: Limits): string[] {
  return [
    ...(loaded_at === null ? [`Version ${version}`] : []),
    HEADING,
    row('(others)', common, []),
    ...providers.map((one) => row(one.site, one, one.mx)),
  ]
}
