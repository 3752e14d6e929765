/** `sendwright serve`: starts the service, prints its address; SIGHUP reads files again, SIGTERM and SIGINT stop it. */
import { setFlagsFromString } from 'node:v8'
import pino, { type Logger } from 'pino'
import { armFailPoint } from '../base/flow/fail-point.ts'
import { collectAtRest } from '../base/process/rest-collection.ts'
import { VERSION } from '../base/process/version.ts'
import { systemClock } from '../base/time/clock.ts'
import { type Config, readConfig } from '../platform/config/config.ts'
import { loadRules } from '../receiving/bounces/rules.ts'
import { type Service, startService } from '../service.ts'
import { openFilesFault, openFilesNeeded, readOpenFiles } from '../tools/system/open-files.ts'
import { freeThreadLimits } from './local/engine-flags.ts'
import { createHeapGrowth } from './local/heap-growth.ts'
import { openLogOutput } from './local/log-output.ts'
import { parseFlags } from './usage.ts'

export const usage = `sendwright serve
`

/** A stop takes 30 seconds at most; after this something hangs. What is accepted is on disk. */
const STOP_MAX_MS = 45_000

const STDOUT = 1

export async function run(args: string[]): Promise<void> {
  // Without a listener of ours Node would open its debugger, on a port that any user of the machine can reach.
  process.on('SIGUSR1', () => {})
  parseFlags('serve', args, {})
  const config = readConfig(process.env, { bounceRules: loadRules })
  if (config.testFailPoint !== null) armFailPoint(config.testFailPoint)
  const output = openLogOutput(STDOUT, ({ lines, since, reason }) =>
    log.error({ reason }, `${lines} lines of the log lost since ${since.toISOString()}`),
  )
  process.on('exit', output.flushSync)
  const options = { level: config.logLevel, base: null, timestamp: pino.stdTimeFunctions.isoTime }
  const log: Logger = pino(options, output)
  await warnOfOpenFiles(config, log)
  collectAtRest()
  freeThreadLimits()
  const heap = createHeapGrowth(systemClock, setFlagsFromString)
  const service = config.isFront
    ? await (await import('../front/front.ts')).startFront(config, log)
    : await startService(config, log, {
        sending: { accepted: heap.accepted },
        lostLogLines: output.lost,
      })
  let stopping = false
  const stop = (signal: string) => {
    if (stopping) process.exit(1)
    stopping = true
    log.info({ signal }, 'stopping')
    heap.stop()
    setTimeout(() => {
      log.error('a part does not stop; the process is ended')
      // A thread in a call to the system would keep `process.exit` waiting.
      process.kill(process.pid, 'SIGKILL')
    }, STOP_MAX_MS).unref()
    void service
      .stop()
      .then(output.finish)
      .then(() => process.exit(0))
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  process.on('SIGHUP', () => void ('reload' in service && service.reload()))
  // After the handlers: readers of it may stop the service at once.
  output.write('sessions' in service ? await welcome(config, service) : frontWelcome(config))
}

/** Logged once, before anything fails because of it. */
async function warnOfOpenFiles(config: Config, log: Logger): Promise<void> {
  const files = await readOpenFiles()
  const fault = files && openFilesFault(files.limit, openFilesNeeded(config))
  if (fault) log.warn(fault)
}

const frontWelcome = ({ publicUrl }: Config) => `\nSendwright ${VERSION}\n\n  Front       ${publicUrl}\n\n`

const MODES: Record<Config['delivery']['kind'], string> = {
  capture: 'capture (nothing leaves this machine by itself; mail ends in the built-in inbox)',
  direct: "direct (mail goes to the recipients' own servers)",
  relay: 'relay (mail goes through the configured server)',
}

/** The first screen: addresses, a link to open, a command to paste. */
async function welcome(config: Config, service: Service): Promise<string> {
  const { first, sessions } = service
  const token = await sessions.createLink({ accountId: first.accountId, keyId: null })
  const link = `${config.publicUrl}/login/${token}`
  const key = first.newApiKey ?? config.apiKey
  const lines = [
    '',
    `Sendwright ${VERSION}`,
    '',
    `  API         ${config.publicUrl}   (OpenAPI at /openapi.json)`,
    `  Delivery    ${MODES[config.delivery.kind]}`,
    ...(config.inboxRelease ? [`  Release     through ${config.inboxRelease.server.host}, by hand`] : []),
    `  Data        ${config.databaseUrl ? 'PostgreSQL' : config.dataFolder}`,
    `  Domain      ${first.sandboxDomain}   (sandbox, active)`,
    key === null
      ? '  API key     made at the first start; `sendwright keys create` makes another'
      : first.newApiKey
        ? `  API key     ${key}   (shown once: keep it)`
        : '  API key     as configured',
    '',
    'Open the inbox (works once, for 30 minutes):',
    '',
    `  ${link}`,
    '',
    'Send a message:',
    '',
    ...curl(config.publicUrl, first.sandboxDomain, first.newApiKey ?? '$SENDWRIGHT_API_KEY'),
    '',
    '',
  ]
  return lines.join('\n')
}

function curl(publicUrl: string, domain: string, key: string): string[] {
  return [
    `  curl -s --user "api:${key}" ${publicUrl}/v3/${domain}/messages \\`,
    `    -F from='Sendwright <hello@${domain}>' -F to='you@example.org' \\`,
    `    -F subject='It works' -F text='Hello from Sendwright.' --form-string html='<h1>It works</h1>'`,
  ]
}
