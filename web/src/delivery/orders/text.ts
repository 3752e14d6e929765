const HOSTS_SHOWN = 3

/** Texts about limits per provider and the operator's orders over them. */
export const TEXT = {
  title: 'Providers',
  lead: 'How much each provider gets from one address of yours. Stop one, or give it more, at once.',
  version: (version: string) => `Limits of ${version}`,
  faults: 'Your file of limits has faults and is not in force',
  provider: 'Provider',
  /** The site itself, which orders name, and the first hosts. */
  hosts: (site: string, mx: readonly string[]) =>
    [site, ...mx.slice(0, HOSTS_SHOWN)].join(', ') +
    (mx.length > HOSTS_SHOWN ? ` and ${mx.length - HOSTS_SHOWN} more` : ''),
  state: 'State',
  connections: 'Connections',
  rate: 'Rate',
  perConnection: 'Messages a connection',
  perConnectionOf: (count: number) => count.toLocaleString('en'),
  noRate: 'no limit',
  find: 'Find a provider',
  noneFound: (q: string) => `No provider has “${q}” in its name`,
  noneFoundWhy: 'A domain, or the host that takes its mail, can be stopped too: use the button above.',
  ordered: 'ordered',
  sends: 'Sends',
  stopped: 'Stopped',
  stop: 'Stop',
  stopOf: (name: string) => `Stop mail to ${name}`,
  stopOther: 'Stop a provider or domain',
  stopTitle: 'Stop all mail to a destination',
  stopTitleOf: (name: string) => `Stop all mail to ${name}`,
  stopWhy:
    'Nothing is sent there, of all accounts, also what is accepted from now on. It waits, without a counted attempt, until you resume it, or until its delivery window ends.',
  stopSubmit: 'Stop all mail',
  site: 'Site or domain',
  sitePlaceholder: 'google, or example.com',
  reason: 'Reason, for your colleagues',
  until: 'Until',
  untils: [
    ['', 'I resume it'],
    ['3600', 'in an hour'],
    ['21600', 'in 6 hours'],
    ['86400', 'tomorrow at this time'],
    ['604800', 'in a week'],
  ] as const,
  limitsUntils: [
    ['', 'I end it'],
    ['3600', 'in an hour'],
    ['21600', 'in 6 hours'],
    ['86400', 'tomorrow at this time'],
    ['604800', 'in a week'],
  ] as const,
  limits: 'Limits',
  limitsOf: (name: string) => `Change the limits of ${name}`,
  limitsTitle: (name: string) => `Limits of ${name}`,
  limitsWhy:
    'For each of your addresses, at once, also over a restart. A queue that has slowed down after a reply still recovers by itself.',
  connectionsLabel: 'Connections at a time',
  asShaped: (value: string) => `Empty: as set, ${value}`,
  rateLabel: 'Messages',
  rateUnit: 'In',
  units: [
    ['1s', 'a second'],
    ['1m', 'a minute'],
    ['1h', 'an hour'],
    ['none', 'no limit'],
  ] as const,
  save: 'Save',
  saved: (site: string) => `Limits of ${site} changed`,
  reset: 'Reset',
  resetOf: (name: string) => `Reset the limits of ${name}`,
  resetDone: (site: string) => `${site} has the set limits again`,
  restored: 'The order is back',
} as const

/** 0.5 a second as "30 a minute". */
export function rateWords(perSecond: number | null): string {
  if (perSecond === null) return TEXT.noRate
  const [count, unit] =
    perSecond >= 1
      ? [perSecond, 'second']
      : perSecond * 60 >= 1
        ? [perSecond * 60, 'minute']
        : [perSecond * 3600, 'hour']
  return `${count.toLocaleString('en', { maximumFractionDigits: 1 })} a ${unit}`
}

/** "300/1m" as "300 in 1m". */
export const orderedRate = (rate: string) => (rate === 'none' ? TEXT.noRate : rate.replace('/', ' in '))
