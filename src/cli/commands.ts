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
  queue: {
    summary: 'what waits and why; hold, release, retry, expire, drop or move it',
    load: () => import('./operate/queue.ts').then((of) => ({ usage: of.QUEUE_USAGE, run: of.queueCommand })),
  },
  events: {
    summary: 'what happened to mail, and what happens now',
    load: () =>
      import('./operate/events.ts').then((of) => ({ usage: of.EVENTS_USAGE, run: of.eventsCommand })),
  },
  trace: {
    summary: 'all that is known of one message',
    load: () => import('./operate/trace.ts').then((of) => ({ usage: of.TRACE_USAGE, run: of.traceCommand })),
  },
  top: {
    summary: 'what the service does now, on a live screen',
    load: () => import('./operate/top.ts').then((of) => ({ usage: of.TOP_USAGE, run: of.topCommand })),
  },
  domains: {
    summary: 'add, verify and list sending domains, their DNS records and keys',
    load: () =>
      import('./operate/domains.ts').then((of) => ({ usage: of.DOMAINS_USAGE, run: of.domainsCommand })),
  },
  dns: {
    summary: 'write the records of domains at their DNS providers, and take that back',
    load: () => import('./operate/dns.ts').then((of) => ({ usage: of.DNS_USAGE, run: of.dnsCommand })),
  },
  suppressions: {
    summary: 'list, add, remove, import and export suppressed addresses',
    load: () =>
      import('./operate/suppressions.ts').then((of) => ({
        usage: of.SUPPRESSIONS_USAGE,
        run: of.suppressionsCommand,
      })),
  },
  people: {
    summary: 'collect or erase all that is stored about one mail address',
    load: () =>
      import('./operate/people.ts').then((of) => ({ usage: of.PEOPLE_USAGE, run: of.peopleCommand })),
  },
  routes: {
    summary: 'list inbound routes, or show which one an address meets',
    load: () =>
      import('./operate/routes.ts').then((of) => ({ usage: of.ROUTES_USAGE, run: of.routesCommand })),
  },
  relays: {
    summary: 'list, test, pause and resume relays',
    load: () =>
      import('./operate/relays.ts').then((of) => ({ usage: of.RELAYS_USAGE, run: of.relaysCommand })),
  },
  mcp: {
    summary: 'serve an assistant over standard input and output',
    load: () => import('./operate/mcp.ts').then((of) => ({ usage: of.MCP_USAGE, run: of.mcpCommand })),
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
  pods: {
    summary: 'the pods of a PostgreSQL, and making one',
    load: () => import('./operate/pods.ts').then((of) => ({ usage: of.PODS_USAGE, run: of.podsCommand })),
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
