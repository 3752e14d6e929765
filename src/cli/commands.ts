/** All commands of the program: help, completion and the tests of the command line follow from this table. */
import type { Command } from './usage.ts'

/** Each loads its modules when it is called: the service's take most of a second. */
export const COMMANDS: Record<string, Command> = {
  serve: {
    summary: 'run the service (also: npm start)',
    load: async () => {
      const { SERVE_USAGE: usage, serveCommand } = await import('./serve.ts')
      return { usage, run: serveCommand }
    },
  },
  setup: {
    summary: 'set the service up: host name, https, first domain, admin; asks, or takes flags',
    load: async () => {
      const { SETUP_USAGE: usage, setupCommand: run } = await import('./setup/setup.ts')
      return { usage, run }
    },
  },
  send: {
    summary: 'send one message through the running service',
    load: async () => {
      const { SEND_USAGE: usage, sendCommand: run } = await import('./send.ts')
      return { usage, run }
    },
  },
  keys: {
    summary: 'list, create and delete API keys of the running service',
    load: async () => {
      const { KEYS_USAGE: usage, keysCommand: run } = await import('./keys.ts')
      return { usage, run }
    },
  },
  backup: {
    summary: 'copy everything into an empty folder while the service runs',
    load: async () => {
      const { BACKUP_USAGE: usage, backupCommand: run } = await import('./data/backup.ts')
      return { usage, run }
    },
  },
  verify: {
    summary: 'check whether a backup is complete',
    load: async () => {
      const { BACKUP_USAGE: usage, verifyCommand: run } = await import('./data/backup.ts')
      return { usage, run }
    },
  },
  restore: {
    summary: 'restore a backup into an empty data folder',
    load: async () => {
      const { BACKUP_USAGE: usage, restoreCommand: run } = await import('./data/backup.ts')
      return { usage, run }
    },
  },
  migrate: {
    summary: 'copy everything from SQLite to PostgreSQL or back, or compare a copy',
    load: async () => {
      const { MIGRATE_USAGE: usage, migrateCommand: run } = await import('./data/migrate.ts')
      return { usage, run }
    },
  },
  import: {
    summary: 'take over what another service has, from its API or its files',
    load: async () => {
      const { IMPORT_USAGE: usage, importCommand: run } = await import('./data/import.ts')
      return { usage, run }
    },
  },
  export: {
    summary: 'write everything that can be imported into a folder',
    load: async () => {
      const { EXPORT_USAGE: usage, exportCommand: run } = await import('./data/export.ts')
      return { usage, run }
    },
  },
  doctor: {
    summary: 'check whether this machine is fit to send mail',
    load: async () => {
      const { DOCTOR_USAGE: usage, doctorCommand: run } = await import('./doctor.ts')
      return { usage, run }
    },
  },
  health: {
    summary: 'tell whether the service answers; for health checks of containers',
    load: async () => {
      const { HEALTH_USAGE: usage, healthCommand: run } = await import('./health.ts')
      return { usage, run }
    },
  },
  shaping: {
    summary: 'check a file of limits per provider, or show what is in force',
    load: async () => {
      const { SHAPING_USAGE: usage, shapingCommand: run } = await import('./shaping.ts')
      return { usage, run }
    },
  },
  'login-link': {
    summary: 'a one-time link that signs a browser in',
    load: async () => {
      const { LOGIN_LINK_USAGE: usage, loginLinkCommand: run } = await import('./login-link.ts')
      return { usage, run }
    },
  },
  completion: {
    summary: 'a script for bash, zsh or fish that completes commands and options',
    load: async () => {
      const { COMPLETION_USAGE: usage, completionCommand } = await import('./completion.ts')
      return { usage, run: (args) => completionCommand(args, COMMANDS) }
    },
  },
}
