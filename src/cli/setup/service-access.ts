/**
 * The API for `sendwright setup`: of the running service, else of one that is started for the length of the setup, on
 * loopback, without jobs, mail and SMTP.
 */
import pino from 'pino'
import { type Config, ConfigError, readConfig } from '../../platform/config/config.ts'
import { askIfRunning, createClient, type ServiceClient } from '../local/client.ts'

export interface ServiceAccess {
  client: ServiceClient
  isRunning: boolean
  /** Made by the first start, which this was; shown once. */
  newApiKey: string | null
  stop(): Promise<void>
}

type Environment = NodeJS.ProcessEnv

/**
 * `before`: the settings that a running service has; `after`: those that were just written.
 * @throws StoreUnavailable when the database cannot be opened
 */
export async function openAccess(before: Environment, after: Environment): Promise<ServiceAccess> {
  const config = readConfig(after)
  return (isSameData(before, config) ? await running(before) : null) ?? startHere(config, after)
}

/** A running service with another database is not the one that is set up. */
function isSameData(before: Environment, after: Config): boolean {
  try {
    const { dataFolder, databaseUrl } = readConfig(before)
    return dataFolder === after.dataFolder && databaseUrl === after.databaseUrl
  } catch (error) {
    // No service starts with faulty settings; this run may have mended them.
    if (error instanceof ConfigError) return false
    throw error
  }
}

const running = (env: Environment): Promise<ServiceAccess | null> =>
  askIfRunning(
    readConfig(env),
    async (client) => {
      await client.call('GET', '/sendwright/v1/system')
      return { client, isRunning: true, newApiKey: null, stop: async () => {} }
    },
    env,
  )

async function startHere(config: Config, env: Environment): Promise<ServiceAccess> {
  const { startService } = await import('../../service.ts')
  const quiet = {
    ...config,
    ...{ host: '127.0.0.1', port: 0, httpsPort: null, smtpsPort: null, acme: null, dkimZoneListen: null },
    roles: ['api'] as const,
  }
  const service = await startService(quiet, pino({ level: 'silent' }))
  return {
    client: createClient(env),
    isRunning: false,
    newApiKey: service.first.newApiKey ?? null,
    stop: () => service.stop(),
  }
}
