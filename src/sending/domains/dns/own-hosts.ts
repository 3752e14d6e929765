/**
 * Host names of the service itself. A tracking host, `<web_prefix>.<domain>`, must not be one of them: an account
 * could get a certificate for the service's name, and visits of its recipients could not be distinguished from
 * visits to the service.
 */
import type { Config } from '../../../platform/config/config.ts'

/** In lower case. */
export type OwnHosts = ReadonlySet<string>

type Names = Pick<Config, 'publicUrl' | 'trackingUrl' | 'storageUrl' | 'hostname' | 'dnsTargets'>

export const ownHostsOf = ({ hostname, dnsTargets, ...urls }: Names): OwnHosts =>
  new Set([...urlHostsOf(urls), hostname.toLowerCase(), dnsTargets.tracking.toLowerCase()])

/** Hosts of links to the service, each once. */
export function urlHostsOf({
  publicUrl,
  trackingUrl,
  storageUrl,
}: Pick<Names, 'publicUrl' | 'trackingUrl' | 'storageUrl'>): string[] {
  const urls = [publicUrl, storageUrl, ...(trackingUrl === null ? [] : [trackingUrl])]
  return [...new Set(urls.map((url) => new URL(url).hostname.toLowerCase()))]
}
