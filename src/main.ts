/** The command line: reads arguments, calls one command, sets the exit status. */
import { doctorCommand } from './cli/doctor.ts'
import { keysCommand } from './cli/keys.ts'
import { loginLinkCommand } from './cli/login-link.ts'
import { sendCommand } from './cli/send.ts'
import { serveCommand } from './cli/serve.ts'
import { CommandError } from './cli/usage.ts'
import { ConfigError } from './config.ts'
import { StoreUnavailable, UnknownSchema } from './store/store.ts'

const USAGE = `sendwright <command>

  serve                     run the service (also: npm start)
  send [options]            send one message through the running service
  keys list|create|delete   API keys of the running service
  doctor                    check whether this machine is fit to send mail
  login-link                a one-time link that signs a browser in

Settings come from the environment (SENDWRIGHT_...); the README lists them.
`

const COMMANDS: Record<string, (args: string[]) => Promise<void>> = {
  serve: serveCommand,
  send: sendCommand,
  keys: keysCommand,
  doctor: doctorCommand,
  'login-link': loginLinkCommand,
}

async function main([name = 'help', ...args]: string[]): Promise<number> {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (!command) {
    const asked = ['help', '--help', '-h'].includes(name)
    process[asked ? 'stdout' : 'stderr'].write(asked ? USAGE : `Unknown command "${name}".\n\n${USAGE}`)
    return asked ? 0 : 2
  }
  try {
    await command(args)
    return 0
  } catch (error) {
    const expected = [CommandError, ConfigError, StoreUnavailable, UnknownSchema].some(
      (type) => error instanceof type,
    )
    const said = error instanceof StoreUnavailable ? error.detail : (error as Error).message
    process.stderr.write(`${expected ? said : ((error as Error).stack ?? String(error))}\n`)
    return error instanceof CommandError ? error.exitCode : 1
  }
}

// A running service keeps the process alive; its own stop ends it.
process.exitCode = await main(process.argv.slice(2))
