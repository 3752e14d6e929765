/** All commands of the program: help, completion and the tests of the command line follow from this table. */
import type { Command } from './usage.ts'

/** Each loads its modules when it is called: the service's take most of a second. */
export const COMMANDS: Record<string, Command> = {
  serve: {
    summary: 'run the service (also: npm start)',
    load: () => import('./serve.ts').then((of) => ({ usage: of.SERVE_USAGE, run: of.serveCommand })),
  },
  setup: {
    summary: 'set the service up: host name, https, first domain, admin; asks, or takes flags',
    load: () => import('./setup/setup.ts').then((of) => ({ usage: of.SETUP_USAGE, run: of.setupCommand })),
  },
  send: {
    summary: 'send one message through the running service',
    load: () => import('./send.ts').then((of) => ({ usage: of.SEND_USAGE, run: of.sendCommand })),
  },
  keys: {
    summary: 'list, create and delete API keys of the running service',
    load: () => import('./keys.ts').then((of) => ({ usage: of.KEYS_USAGE, run: of.keysCommand })),
  },
  backup: {
    summary: 'copy everything into an empty folder while the service runs',
    load: () => import('./data/backup.ts').then((of) => ({ usage: of.BACKUP_USAGE, run: of.backupCommand })),
  },
  verify: {
    summary: 'check whether a backup is complete',
    load: () => import('./data/backup.ts').then((of) => ({ usage: of.BACKUP_USAGE, run: of.verifyCommand })),
  },
  restore: {
    summary: 'restore a backup into an empty data folder',
    load: () => import('./data/backup.ts').then((of) => ({ usage: of.BACKUP_USAGE, run: of.restoreCommand })),
  },
  migrate: {
    summary: 'copy everything from SQLite to PostgreSQL or back, or compare a copy',
    load: () =>
      import('./data/migrate.ts').then((of) => ({ usage: of.MIGRATE_USAGE, run: of.migrateCommand })),
  },
  import: {
    summary: 'take over what another service has, from its API or its files',
    load: () => import('./data/import.ts').then((of) => ({ usage: of.IMPORT_USAGE, run: of.importCommand })),
  },
  export: {
    summary: 'write everything that can be imported into a folder',
    load: () => import('./data/export.ts').then((of) => ({ usage: of.EXPORT_USAGE, run: of.exportCommand })),
  },
  doctor: {
    summary: 'check whether this machine is fit to send mail',
    load: () => import('./doctor.ts').then((of) => ({ usage: of.DOCTOR_USAGE, run: of.doctorCommand })),
  },
  health: {
    summary: 'tell whether the service answers; for health checks of containers',
    load: () => import('./health.ts').then((of) => ({ usage: of.HEALTH_USAGE, run: of.healthCommand })),
  },
  shaping: {
    summary: 'check a file of limits per provider, or show what is in force',
    load: () => import('./shaping.ts').then((of) => ({ usage: of.SHAPING_USAGE, run: of.shapingCommand })),
  },
  'login-link': {
    summary: 'a one-time link that signs a browser in',
    load: () =>
      import('./login-link.ts').then((of) => ({ usage: of.LOGIN_LINK_USAGE, run: of.loginLinkCommand })),
  },
  completion: {
    summary: 'a script for bash, zsh or fish that completes commands and options',
    load: async () => {
      const { COMPLETION_USAGE: usage, completionCommand } = await import('./completion.ts')
      return { usage, run: (args) => completionCommand(args, COMMANDS) }
    },
  },
}
