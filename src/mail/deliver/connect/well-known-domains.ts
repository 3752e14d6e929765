/**
 * Mailbox providers that a recipient's domain tells, for events without an MX host of that domain: accepted mail, and mail
 * that leaves through a relay. Names are those of metrics-logs.md section 2.
 */
const DOMAINS: Readonly<Record<string, string>> = {
  Gmail: 'gmail.com googlemail.com',
  'Outlook US': 'outlook.com hotmail.com live.com msn.com',
  'Outlook EU':
    'hotmail.co.uk hotmail.de hotmail.es hotmail.fr hotmail.it live.co.uk live.de live.fr outlook.de outlook.fr',
  'Yahoo US': 'aol.com rocketmail.com yahoo.com ymail.com',
  'Yahoo EU': 'yahoo.co.uk yahoo.de yahoo.es yahoo.fr yahoo.it',
  Apple: 'icloud.com mac.com me.com',
  Proton: 'pm.me proton.me protonmail.com',
  Chinese: '126.com 163.com foxmail.com qq.com sina.com',
  French: 'free.fr laposte.net orange.fr sfr.fr wanadoo.fr',
  German: 'freenet.de gmx.de gmx.net mail.com posteo.de t-online.de web.de',
  Italian: 'alice.it libero.it tiscali.it virgilio.it',
  UK: 'btinternet.com talktalk.net virginmedia.com',
  Canadian: 'bell.net rogers.com shaw.ca sympatico.ca telus.net videotron.ca',
  'Other US': 'att.net bellsouth.net comcast.net cox.net sbcglobal.net verizon.net',
  'Other EU': 'seznam.cz wp.pl',
}

const PROVIDERS = new Map(
  Object.entries(DOMAINS).flatMap(([provider, domains]) =>
    domains.split(' ').map((domain): [string, string] => [domain, provider]),
  ),
)

/** `Other` for every domain that is not well known. */
export const providerOfDomain = (domain: string): string => PROVIDERS.get(domain) ?? 'Other'
