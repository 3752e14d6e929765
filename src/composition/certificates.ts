/** Puts together the certificates of tracking hosts and what the HTTPS listener needs of them. */
import { readFileSync } from 'node:fs'
import type { ServerOptions } from 'node:https'
import { createIssuer } from '../acme/order.ts'
import { lookUp } from '../domains/lookups.ts'
import { ownHostsOf } from '../domains/own-hosts.ts'
import { wantedRecords } from '../domains/records.ts'
import type { Ticker } from '../domains/ticker.ts'
import type { Operation } from '../http/operation.ts'
import { createTlsIdentity, tlsIdentityFiles } from '../inbound/tls-identity.ts'
import { createAcmeAccounts } from '../tracking/acme-account.ts'
import { createCertificateJob } from '../tracking/certificate-job.ts'
import { certificateRoutes } from '../tracking/certificate-routes.ts'
import { createCertificateStore } from '../tracking/certificate-store.ts'
import { certificateFaults, type LeadsHere } from '../tracking/certificates.ts'
import { createTlsContexts, MODERN_TLS, type TlsContexts } from '../tracking/tls-contexts.ts'
import type { Core } from './core.ts'
import type { Outgoing } from './outgoing.ts'

export interface Certificates {
  routes: Operation[]
  /** The HTTPS listener; null: there is none. */
  tls: { port: number; options: ServerOptions } | null
  strictTransport: TlsContexts['strictTransport']
  /** Whether https links to the host work now; false for every host without a listener of ours. */
  certificateActive(host: string): Promise<boolean>
  /** Removes what a deleted domain had. */
  removeDomain(domainId: string): Promise<void>
  faults(): ReturnType<typeof certificateFaults>
  start(): void
  stop(): Promise<void>
}

export function createCertificates(core: Core, { resolver, allow }: Outgoing): Certificates {
  const { config, clock, log, domains, random } = core
  const certificates = createCertificateStore(core.store, core.sealer)
  const identity = {
    files: config.smtpTls,
    dataFolder: config.dataFolder,
    hostname: config.hostname,
    clock,
    log,
    ...MODERN_TLS,
  }
  const isServed = config.httpsPort !== null
  const fallback = isServed ? createTlsIdentity(identity) : null
  const ownHosts = ownHostsOf(config)
  const contexts = fallback && createTlsContexts({ certificates, fallback, ownHosts, clock, log })
  const { spfIncludeHost } = config.dnsTargets
  const leadsHere: LeadsHere = async (domain, host) => {
    // A domain from before that was refused, or a name that became the service's later.
    if (ownHosts.has(host)) return 'no'
    const asked = { ...domain, webPrefix: host.slice(0, host.indexOf('.')) }
    const wanted = wantedRecords(asked, config.dnsTargets).find(({ purpose }) => purpose === 'tracking')
    if (!wanted) return 'no'
    const check = await lookUp({ resolver, clock, allow, spfIncludeHost }, wanted, undefined)
    return check.valid ? 'yes' : check.answered ? 'no' : 'unanswered'
  }
  let job: Ticker | null = null
  if (config.acme !== null && contexts !== null) {
    const accounts = createAcmeAccounts(core.store, core.sealer, config.acme.email)
    const issuer = createIssuer({ directory: config.acme.directory, accounts, clock })
    const { changed } = contexts
    job = createCertificateJob({ certificates, issuer, domains, leadsHere, changed, clock, log, random })
  }
  return {
    routes: certificateRoutes({
      certificates,
      domains,
      clock,
      leadsHere,
      canOrder: job !== null,
      wake: () => job?.wake(),
    }),
    tls:
      config.httpsPort === null || contexts === null
        ? null
        : { port: config.httpsPort, options: serverOptions(identity, contexts) },
    strictTransport: async (host) => contexts?.strictTransport(host) ?? null,
    certificateActive: async (host) => contexts?.certificateActive(host) ?? false,
    async removeDomain(domainId) {
      for (const host of await certificates.removeDomain(domainId)) contexts?.changed(host)
    },
    faults: () => certificateFaults(certificates, clock.now()),
    start: () => job?.start(),
    stop: async () => job?.stop(),
  }
}

function serverOptions(
  identity: Parameters<typeof tlsIdentityFiles>[0],
  { contextFor }: TlsContexts,
): ServerOptions {
  const { certificateFile, keyFile } = tlsIdentityFiles(identity)
  return {
    ...MODERN_TLS,
    // For clients that name no host; everybody else is asked for by name.
    cert: readFileSync(certificateFile),
    key: readFileSync(keyFile),
    SNICallback: (name, done) => void contextFor(name).then((context) => done(null, context)),
  }
}
