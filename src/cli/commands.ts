/** All commands of the program: help, completion and the tests of the command line follow from this table. */
import type { Command } from './usage.ts'

/** Each loads its modules when it is called: the service's take most of a second. */
export const COMMANDS: Record<string, Command> = {
  serve: {
    summary: 'run the service (also: npm start)',
    load: () => import('./serve.ts'),
  },
  setup: {
    summary: 'set the service up: host name, https, first domain, admin; asks, or takes flags',
    load: () => import('./setup/setup.ts'),
  },
  send: {
    summary: 'send one message through the running service',
    load: () => import('./send.ts'),
  },
  keys: {
    summary: 'list, create and delete API keys of the running service',
    load: () => import('./keys.ts'),
  },
  queue: {
    summary: 'what waits and why; hold, release, retry, expire, drop or move it',
    load: () => import('./operate/queue.ts'),
  },
  events: {
    summary: 'what happened to mail, and what happens now',
    load: () => import('./operate/events.ts'),
  },
  trace: {
    summary: 'all that is known of one message',
    load: () => import('./operate/trace.ts'),
  },
  top: {
    summary: 'what the service does now, on a live screen',
    load: () => import('./operate/top.ts'),
  },
  domains: {
    summary: 'add, verify and list sending domains, their DNS records and keys',
    load: () => import('./operate/domains.ts'),
  },
  dns: {
    summary: 'write the records of domains at their DNS providers, and take that back',
    load: () => import('./operate/dns.ts'),
  },
  suppressions: {
    summary: 'list, add, remove, import and export suppressed addresses',
    load: () => import('./operate/suppressions.ts'),
  },
  people: {
    summary: 'collect or erase all that is stored about one mail address',
    load: () => import('./operate/people.ts'),
  },
  routes: {
    summary: 'list inbound routes, or show which one an address meets',
    load: () => import('./operate/routes.ts'),
  },
  relays: {
    summary: 'list, test, pause and resume relays',
    load: () => import('./operate/relays.ts'),
  },
  mcp: {
    summary: 'serve an assistant over standard input and output',
    load: () => import('./operate/mcp.ts'),
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
    load: () => import('./data/migrate.ts'),
  },
  import: {
    summary: 'take over what another service has, from its API or its files',
    load: () => import('./data/import.ts'),
  },
  export: {
    summary: 'write everything that can be imported into a folder',
    load: () => import('./data/export.ts'),
  },
  doctor: {
    summary: 'check whether this machine is fit to send mail',
    load: () => import('./doctor.ts'),
  },
  health: {
    summary: 'tell whether the service answers; for health checks of containers',
    load: () => import('./health.ts'),
  },
  pods: {
    summary: 'the pods of a PostgreSQL, and making one',
    load: () => import('./operate/pods.ts'),
  },
  shaping: {
    summary: 'check a file of limits per provider, or show what is in force',
    load: () => import('./shaping.ts'),
  },
  'login-link': {
    summary: 'a one-time link that signs a browser in',
    load: () => import('./login-link.ts'),
  },
  completion: {
    summary: 'a script for bash, zsh or fish that completes commands and options',
    load: async () => {
      const { usage, run } = await import('./completion.ts')
      return { usage, run: (args) => run(args, COMMANDS) }
    },
  },
}
