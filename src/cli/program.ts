/** One command line, from its words to the exit code. */

import { printable, printableLine } from '../base/printable.ts'
import { CannotListen } from '../base/process/errors.ts'
import { systemFault } from '../base/process/system-fault.ts'
import { VERSION } from '../base/process/version.ts'
import { ConfigError } from '../platform/config/config.ts'
import { PRIVATE_UMASK } from '../platform/store/blobs/private-files.ts'
import { SecretFault } from '../platform/store/secrets/secret-file.ts'
import { StoreUnavailable, UnknownSchema } from '../platform/store/store.ts'
import { COMMANDS } from './commands.ts'
import { CommandError, didYouMean, overview } from './usage.ts'

/** Faults of the machine, the settings or the call, whose message says what to do. */
const EXPECTED = [CannotListen, CommandError, ConfigError, SecretFault, StoreUnavailable, UnknownSchema]

/**
 * Carries out one command line, and prints its result and its fault.
 * @param argv without the program's own name
 * @returns the exit code, as `sendwright --help` lists them
 */
export async function runProgram([name = 'help', ...args]: string[]): Promise<number> {
  process.umask(PRIVATE_UMASK)
  watchOutput()
  if (['--version', '-v', 'version'].includes(name)) {
    process.stdout.write(`sendwright ${VERSION}\n`)
    return 0
  }
  const isHelp = ['help', '--help', '-h'].includes(name)
  const called = isHelp ? (args[0] ?? '') : name
  const command = Object.hasOwn(COMMANDS, called) ? COMMANDS[called] : undefined
  if (!command) {
    if (isHelp && called === '') process.stdout.write(overview(COMMANDS))
    else
      process.stderr.write(
        `${printableLine(`Unknown command "${called}"${didYouMean(called, Object.keys(COMMANDS))}; "sendwright help" lists them.`)}\n`,
      )
    return isHelp && called === '' ? 0 : 2
  }
  try {
    const { run, usage } = await command.load()
    if (isHelp || args.includes('--help') || args.includes('-h')) process.stdout.write(usage)
    else await run(args)
    return 0
  } catch (error) {
    // It may repeat what a server or a file says.
    process.stderr.write(`${printable(faultText(error))}\n`)
    return error instanceof CommandError ? error.exitCode : 1
  }
}

/** A sentence, or for a fault of the program's own its stack. */
function faultText(error: unknown): string {
  if (error instanceof StoreUnavailable) return error.detail
  if (EXPECTED.some((type) => error instanceof type)) return (error as Error).message
  return systemFault(error) ?? (error as Error).stack ?? String(error)
}

/**
 * Lets a command run to its end when its output cannot be written. Who reads standard output may stop early, as `head`
 * does: that is no fault. Any other error, such as a full disk, is reported, and makes the exit code 1 in place of 0.
 */
function watchOutput(): void {
  // There is nowhere left to report it.
  process.stderr.on('error', () => {})
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') return
    process.stderr.write(`Cannot write the output: ${message}\n`)
    process.once('exit', () => {
      process.exitCode ||= 1
    })
  })
}
