/**
 * The configuration: the settings of each area with meaning, unit and default are in a file of this folder. The only reader
 * of the environment. A fault in one setting never hides the next: all of them are reported together.
 */
import { type ContentCheckConfig, readContentCheck } from './content-check.ts'
import { type ListeningConfig, readListening } from './listening.ts'
import type { Readers } from './parsers.ts'
import { type ConfigChecks, type ReceivingConfig, readReceiving } from './receiving.ts'
import { readSending, type SendingConfig } from './sending.ts'
import { readStorage, type StorageConfig } from './storage.ts'
import { readWatching, type WatchingConfig } from './watching.ts'

export interface Config
  extends ListeningConfig,
    StorageConfig,
    SendingConfig,
    ReceivingConfig,
    ContentCheckConfig,
    WatchingConfig {
  /** Tests only: `name:count` of base/flow/fail-point.ts. */
  testFailPoint: string | null
}

export class ConfigError extends Error {
  readonly faults: readonly string[]
  constructor(faults: readonly string[]) {
    super(
      `The configuration has ${faults.length} fault(s):\n${faults.map((fault) => `  ${fault}`).join('\n')}`,
    )
    this.name = 'ConfigError'
    this.faults = faults
  }
}

/** Reads every setting from `env`. Names, meanings and defaults: docs/settings.md. @throws ConfigError listing all faults. */
export function readConfig(env: Readers['env'], checks: ConfigChecks = {}): Config {
  const faults: string[] = []
  const seen = new Set<string>()

  const setting: Readers['setting'] = (name, parse, otherwise) => {
    const variable = `SENDWRIGHT_${name}`
    seen.add(variable)
    const text = env[variable]?.trim()
    if (!text) return otherwise()
    try {
      return parse(text)
    } catch (error) {
      faults.push(`${variable}: ${(error as Error).message}`)
      return otherwise()
    }
  }
  const optional = <T>(name: string, parse: (text: string) => T) => setting<T | null>(name, parse, () => null)

  const readers: Readers = { setting, optional, faults, env }
  const listening = readListening(readers)
  const config: Config = {
    ...listening,
    ...readStorage(readers),
    ...readSending(readers, listening.publicUrl),
    ...readReceiving(readers, checks),
    ...readContentCheck(readers),
    ...readWatching(readers),
    testFailPoint: optional('TEST_FAIL_POINT', (text) => text),
  }
  if (config.acme !== null && config.httpsPort === null) {
    faults.push(
      'SENDWRIGHT_ACME_DIRECTORY needs SENDWRIGHT_HTTPS_PORT: nothing else would use the certificates',
    )
  }
  for (const name of Object.keys(env)) {
    if (name.startsWith('SENDWRIGHT_') && !seen.has(name) && !name.startsWith('SENDWRIGHT_TEST_')) {
      faults.push(`${name}: unknown setting`)
    }
  }
  if (faults.length > 0) throw new ConfigError(faults)
  return config
}
