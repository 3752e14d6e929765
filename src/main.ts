/** The command line: reads arguments, calls one command, sets the exit status. */
import { printable } from './base/printable.ts'
import { VERSION } from './base/version.ts'
import { type Command, CommandError, overview } from './cli/usage.ts'
import { ConfigError } from './config.ts'
import { PRIVATE_UMASK } from './store/private-files.ts'
import { SecretFault } from './store/secret-file.ts'
import { StoreUnavailable, UnknownSchema } from './store/store.ts'

/** Each loads its modules when it is called: the service's take most of a second. */
const COMMANDS: Record<string, Command> = {
  serve: {
    summary: 'run the service (also: npm start)',
    load: async () => {
      const { SERVE_USAGE: usage, serveCommand } = await import('./cli/serve.ts')
      return { usage, run: serveCommand }
    },
  },
  setup: {
    summary: 'set the service up: host name, https, first domain, admin; asks, or takes flags',
    load: async () => {
      const { SETUP_USAGE: usage, setupCommand: run } = await import('./cli/setup/setup.ts')
      return { usage, run }
    },
  },
  send: {
    summary: 'send one message through the running service',
    load: async () => {
      const { SEND_USAGE: usage, sendCommand: run } = await import('./cli/send.ts')
      return { usage, run }
    },
  },
  keys: {
    summary: 'list, create and delete API keys of the running service',
    load: async () => {
      const { KEYS_USAGE: usage, keysCommand: run } = await import('./cli/keys.ts')
      return { usage, run }
    },
  },
  backup: {
    summary: 'copy everything into an empty folder while the service runs',
    load: async () => {
      const { BACKUP_USAGE: usage, backupCommand: run } = await import('./cli/backup.ts')
      return { usage, run }
    },
  },
  verify: {
    summary: 'check whether a backup is complete',
    load: async () => {
      const { BACKUP_USAGE: usage, verifyCommand: run } = await import('./cli/backup.ts')
      return { usage, run }
    },
  },
  restore: {
    summary: 'restore a backup into an empty data folder',
    load: async () => {
      const { BACKUP_USAGE: usage, restoreCommand: run } = await import('./cli/backup.ts')
      return { usage, run }
    },
  },
  migrate: {
    summary: 'copy everything from SQLite to PostgreSQL or back, or compare a copy',
    load: async () => {
      const { MIGRATE_USAGE: usage, migrateCommand: run } = await import('./cli/migrate.ts')
      return { usage, run }
    },
  },
  import: {
    summary: 'take over what another service has, from its API or its files',
    load: async () => {
      const { IMPORT_USAGE: usage, importCommand: run } = await import('./cli/import.ts')
      return { usage, run }
    },
  },
  export: {
    summary: 'write everything that can be imported into a folder',
    load: async () => {
      const { EXPORT_USAGE: usage, exportCommand: run } = await import('./cli/export.ts')
      return { usage, run }
    },
  },
  doctor: {
    summary: 'check whether this machine is fit to send mail',
    load: async () => {
      const { DOCTOR_USAGE: usage, doctorCommand: run } = await import('./cli/doctor.ts')
      return { usage, run }
    },
  },
  health: {
    summary: 'tell whether the service answers; for health checks of containers',
    load: async () => {
      const { HEALTH_USAGE: usage, healthCommand: run } = await import('./cli/health.ts')
      return { usage, run }
    },
  },
  shaping: {
    summary: 'check a file of limits per provider, or show what is in force',
    load: async () => {
      const { SHAPING_USAGE: usage, shapingCommand: run } = await import('./cli/shaping.ts')
      return { usage, run }
    },
  },
  'login-link': {
    summary: 'a one-time link that signs a browser in',
    load: async () => {
      const { LOGIN_LINK_USAGE: usage, loginLinkCommand: run } = await import('./cli/login-link.ts')
      return { usage, run }
    },
  },
  completion: {
    summary: 'a script for bash, zsh or fish that completes commands and options',
    load: async () => {
      const { COMPLETION_USAGE: usage, completionCommand } = await import('./cli/completion.ts')
      return { usage, run: (args) => completionCommand(args, COMMANDS) }
    },
  },
}

async function main([name = 'help', ...args]: string[]): Promise<number> {
  process.umask(PRIVATE_UMASK)
  if (['--version', '-v', 'version'].includes(name)) {
    process.stdout.write(`sendwright ${VERSION}\n`)
    return 0
  }
  const isHelp = ['help', '--help', '-h'].includes(name)
  const called = isHelp ? (args[0] ?? '') : name
  const command = Object.hasOwn(COMMANDS, called) ? COMMANDS[called] : undefined
  if (!command) {
    if (isHelp && called === '') process.stdout.write(overview(COMMANDS))
    else process.stderr.write(`Unknown command "${called}".\n\n${overview(COMMANDS)}`)
    return isHelp && called === '' ? 0 : 2
  }
  try {
    const { run, usage } = await command.load()
    if (isHelp || args.includes('--help') || args.includes('-h')) process.stdout.write(usage)
    else await run(args)
    return 0
  } catch (error) {
    const expected = [CommandError, ConfigError, SecretFault, StoreUnavailable, UnknownSchema].some(
      (type) => error instanceof type,
    )
    const message = error instanceof StoreUnavailable ? error.detail : (error as Error).message
    // It may repeat what a server or a file says.
    process.stderr.write(`${printable(expected ? message : ((error as Error).stack ?? String(error)))}\n`)
    return error instanceof CommandError ? error.exitCode : 1
  }
}

// A running service keeps the process alive; its own stop ends it.
process.exitCode = await main(process.argv.slice(2))
