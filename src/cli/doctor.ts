/**
 * `sendwright doctor`: whether this machine is fit to send mail. A running service runs the checks, since it holds the
 * database; otherwise the command reads the configuration and runs them itself. It changes nothing.
 */
import { constants, existsSync, statSync } from 'node:fs'
import { access } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { printableLine } from '../base/printable.ts'
import { systemClock } from '../base/time/clock.ts'
import { type Config, readConfig } from '../platform/config/config.ts'
import { DATABASE_FILE } from '../platform/store/blobs/data-folder.ts'
import { checkLog } from '../platform/store/log-check.ts'
import { requireSessions, Servers } from '../platform/store/postgres/postgres-servers.ts'
import { secretFile } from '../platform/store/secrets/secret-file.ts'
import {
  checkFile,
  describeFinding,
  type Finding,
  recoveryAdvice,
  SYNC_CHECK_MAX_BYTES,
  startFileCheck,
} from '../platform/store/sqlite/damage.ts'
import { StoreUnavailable } from '../platform/store/store.ts'
import { createResolver, type Resolver } from '../protocols/dns/resolver.ts'
import { systemServers } from '../protocols/dns/system-servers.ts'
import { loadRules } from '../receiving/bounces/rules.ts'
import { type CheckResult, PROBE_DOMAINS, runChecks } from '../tools/system/checks.ts'
import { askIfRunning, type ServiceClient } from './local/client.ts'
import { CommandError, parseFlags, switches } from './usage.ts'

const SIGNS = { ok: 'ok     ', warning: 'warning', failed: 'FAILED ', skipped: 'skipped' } as const
const DATABASE_MAX_MS = 5_000
/** Within the time that a check may take. */
const INTEGRITY_MAX_MS = 12_000
const FINDINGS_SHOWN = 3

export const usage = `sendwright doctor [--json]
`

/** Prints one line per check, or all as JSON. @throws CommandError when one has failed, for the exit status */
export async function run(args: string[]): Promise<void> {
  const { json } = parseFlags('doctor', args, switches('json'))
  const config = readConfig(process.env, { bounceRules: loadRules })
  const asked = await askIfRunning(config, checksOf)
  const results = asked ?? [...(wasStarted(config) ? [notRunning()] : []), ...(await checkHere(config))]
  const who = asked ? 'The running service says:' : 'The service is not running; looked from here:'
  process.stdout.write(
    json ? `${JSON.stringify({ items: results })}\n` : `${who}\n\n${checksText(results)}\n`,
  )
  const failures = results.filter(({ state }) => state === 'failed').length
  if (failures > 0) throw new CommandError(`${failures} of ${results.length} checks failed.`)
}

/** A line for each check. Sentences may quote what DNS and other servers answer. */
export const checksText = (results: readonly CheckResult[]): string =>
  results
    .map(({ name, state, sentence }) => `  ${SIGNS[state]}  ${name.padEnd(16)}  ${printableLine(sentence)}\n`)
    .join('')

const notRunning = (): CheckResult => ({
  name: 'service',
  checked_at: new Date(systemClock.now()).toISOString(),
  state: 'failed',
  sentence:
    'The service does not run, so nothing is accepted and nothing leaves. Start it; its log says why it stopped.',
})

/** The first start leaves files. Before that it is no fault that no service answers. */
const wasStarted = ({ databaseUrl, dataFolder }: Config): boolean =>
  existsSync(secretFile(dataFolder)) || (databaseUrl === null && existsSync(join(dataFolder, DATABASE_FILE)))

/** As the service sees them. */
export const checksOf = async (client: ServiceClient): Promise<CheckResult[]> =>
  (await client.call('GET', '/sendwright/v1/system/checks'))['items'] as CheckResult[]

/** The checks that need no running service. */
export const checkHere = (config: Config): Promise<CheckResult[]> =>
  withResolver(config, (resolver) =>
    runChecks({
      config,
      resolver,
      hostAddresses: Object.values(networkInterfaces()).flatMap((list) =>
        (list ?? []).map(({ address }) => address),
      ),
      probeDomains: PROBE_DOMAINS,
      tryDatabase: () =>
        config.databaseUrl ? tryPostgres(config.databaseUrl, config.pod) : trySqlite(config.dataFolder),
      clockStepMs: () => null,
      recentRefusals: async () => null,
      now: () => systemClock.now(),
    }),
  )

/** Looks names up as the service would. */
export async function withResolver<T>(
  { dnsServers }: Pick<Config, 'dnsServers'>,
  use: (resolver: Resolver) => Promise<T>,
): Promise<T> {
  const servers = dnsServers ?? systemServers()
  const resolver = createResolver({
    servers: servers.length > 0 ? servers : [{ host: '127.0.0.1', port: 53 }],
    clock: systemClock,
  })
  try {
    return await use(resolver)
  } finally {
    resolver.close()
  }
}

/** Takes the write lock and releases it. */
async function trySqlite(folder: string): Promise<string> {
  const file = join(folder, 'sendwright.db')
  if (!existsSync(file)) {
    if (existsSync(folder)) await access(folder, constants.W_OK)
    return 'There is no database yet; the first start makes it.'
  }
  checkLog(file)
  const { findings, complete } = await checkWhole(file)
  if (findings.length > 0) {
    const found = findings.slice(0, FINDINGS_SHOWN).map(describeFinding).join('; ')
    throw new StoreUnavailable(`it is damaged (${found}). ${recoveryAdvice(folder, findings)}`)
  }
  const database = new DatabaseSync(file, { timeout: DATABASE_MAX_MS })
  try {
    database.exec('BEGIN IMMEDIATE; ROLLBACK')
  } finally {
    database.close()
  }
  const seen = complete ? 'is not damaged' : 'shows no damage in the part that could be looked at in time'
  return `The SQLite database in ${folder} can be written and ${seen}.`
}

/** Checks a small file at once: a busy machine may not even start another process within the time for a large one. */
async function checkWhole(file: string): Promise<{ findings: Finding[]; complete: boolean }> {
  if (statSync(file).size > SYNC_CHECK_MAX_BYTES)
    return startFileCheck(file, 'integrity_check', INTEGRITY_MAX_MS).result
  const findings: Finding[] = []
  const complete = checkFile(file, 'integrity_check', (finding) => findings.push(finding))
  return { findings, complete }
}

async function tryPostgres(url: string, pod: string | null): Promise<string> {
  await requireSessions(new Servers(url, pod))
  return 'PostgreSQL answers and can be written.'
}
