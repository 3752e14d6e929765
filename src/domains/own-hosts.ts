/**
 * Host names of the service itself. A tracking host, `<web_prefix>.<domain>`, must not be one of them: an account
 * could get a certificate for the service's name, and visits of its recipients could not be distinguished from
 * visits to the service.
 */
import { BadRequest } from '../base/errors.ts'
import type { Config } from '../config.ts'

/** In lower case. */
export type OwnHosts = ReadonlySet<string>

type Names = Pick<Config, 'publicUrl' | 'trackingUrl' | 'storageUrl' | 'hostname' | 'dnsTargets'>

export function ownHostsOf({ publicUrl, trackingUrl, storageUrl, hostname, dnsTargets }: Names): OwnHosts {
  const urls = [publicUrl, storageUrl, ...(trackingUrl === null ? [] : [trackingUrl])]
  const names = [...urls.map((url) => new URL(url).hostname), hostname, dnsTargets.tracking]
  return new Set(names.map((name) => name.toLowerCase()))
}

/** @throws BadRequest */
export function checkTrackingHost(own: OwnHosts, webPrefix: string, domain: string): void {
  const host = `${webPrefix}.${domain}`
  if (!own.has(host)) return
  throw new BadRequest(`Cannot use web_prefix "${webPrefix}": ${host} is a host name of this service`)
}
