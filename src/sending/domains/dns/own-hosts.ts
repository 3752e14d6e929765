/**
 * Host names of the service itself. A tracking host, `<web_prefix>.<domain>`, must not be one of them: an account
 * could get a certificate for the service's name, and visits of its recipients could not be distinguished from
 * visits to the service.
 */
import type { Config } from '../../../platform/config/config.ts'

/** In lower case. */
export type OwnHosts = ReadonlySet<string>

type Names = Pick<Config, 'publicUrl' | 'trackingUrl' | 'storageUrl' | 'hostname' | 'dnsTargets'>

export function ownHostsOf({ publicUrl, trackingUrl, storageUrl, hostname, dnsTargets }: Names): OwnHosts {
  const urls = [publicUrl, storageUrl, ...(trackingUrl === null ? [] : [trackingUrl])]
  const names = [...urls.map((url) => new URL(url).hostname), hostname, dnsTargets.tracking]
  return new Set(names.map((name) => name.toLowerCase()))
}
