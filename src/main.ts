/** The command line: reads arguments, calls one command, sets the exit status. */
import { CommandError } from './cli/usage.ts'
import { ConfigError } from './config.ts'
import { PRIVATE_UMASK } from './store/private-files.ts'
import { SecretFault } from './store/secret-file.ts'
import { StoreUnavailable, UnknownSchema } from './store/store.ts'

const USAGE = `sendwright <command>

  serve                     run the service (also: npm start)
  send [options]            send one message through the running service
  keys list|create|delete   API keys of the running service
  backup FOLDER             copy everything into an empty folder while the service runs
  verify FOLDER             check whether a backup is complete
  restore FOLDER            restore a backup into an empty data folder
  doctor                    check whether this machine is fit to send mail
  login-link                a one-time link that signs a browser in

Settings come from the environment (SENDWRIGHT_...); the README lists them.
`

/** Each loads its modules when it is called: the service's take most of a second. */
const COMMANDS: Record<string, (args: string[]) => Promise<void>> = {
  serve: async () => (await import('./cli/serve.ts')).serveCommand(),
  send: async (args) => (await import('./cli/send.ts')).sendCommand(args),
  keys: async (args) => (await import('./cli/keys.ts')).keysCommand(args),
  backup: async (args) => (await import('./cli/backup.ts')).backupCommand(args),
  verify: async (args) => (await import('./cli/backup.ts')).verifyCommand(args),
  restore: async (args) => (await import('./cli/backup.ts')).restoreCommand(args),
  doctor: async () => (await import('./cli/doctor.ts')).doctorCommand(),
  'login-link': async () => (await import('./cli/login-link.ts')).loginLinkCommand(),
}

async function main([name = 'help', ...args]: string[]): Promise<number> {
  process.umask(PRIVATE_UMASK)
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (!command) {
    const isHelp = ['help', '--help', '-h'].includes(name)
    process[isHelp ? 'stdout' : 'stderr'].write(isHelp ? USAGE : `Unknown command "${name}".\n\n${USAGE}`)
    return isHelp ? 0 : 2
  }
  try {
    await command(args)
    return 0
  } catch (error) {
    const expected = [CommandError, ConfigError, SecretFault, StoreUnavailable, UnknownSchema].some(
      (type) => error instanceof type,
    )
    const message = error instanceof StoreUnavailable ? error.detail : (error as Error).message
    process.stderr.write(`${expected ? message : ((error as Error).stack ?? String(error))}\n`)
    return error instanceof CommandError ? error.exitCode : 1
  }
}

// A running service keeps the process alive; its own stop ends it.
process.exitCode = await main(process.argv.slice(2))
