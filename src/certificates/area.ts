/** Certificates of tracking hosts, and what the HTTPS listener needs of them. */
import { readFileSync } from 'node:fs'
import type { ServerOptions } from 'node:https'
import { createIssuer } from '../acme/order.ts'
import type { Area } from '../area.ts'
import type { Core } from '../core.ts'
import { wantedRecords } from '../domains/dns-records.ts'
import { lookUp } from '../domains/lookups.ts'
import { type OwnHosts, ownHostsOf } from '../domains/own-hosts.ts'
import { createTlsIdentity, tlsIdentityFiles } from '../inbound/tls-identity.ts'
import type { Job } from '../jobs/job.ts'
import { createAcmeAccounts } from './acme-account.ts'
import { createCertificateJob } from './certificate-job.ts'
import { certificateRoutes } from './certificate-routes.ts'
import { type CertificateStore, createCertificateStore } from './certificate-store.ts'
import { certificateFaults, endingCertificates, type LeadsHere } from './certificates.ts'
import { createTlsContexts, MODERN_TLS, type TlsContexts } from './tls-contexts.ts'

export interface CertificatesArea extends Area {
  /** The HTTPS listener; null: there is none. */
  tls: { port: number; options: ServerOptions } | null
  strictTransport: TlsContexts['strictTransport']
  /** Whether https links to the host work now; false for every host without a listener of ours. */
  certificateActive(host: string): Promise<boolean>
  faults(): ReturnType<typeof certificateFaults>
  endingSoon(): ReturnType<typeof endingCertificates>
}

export function certificatesArea(core: Core): CertificatesArea {
  const { config, clock, log, domains } = core
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
  const leadsHere = leadsHereBy(core, ownHosts)
  const job = contexts && jobOf(core, certificates, contexts, leadsHere)
  return {
    operations: certificateRoutes({
      certificates,
      domains,
      clock,
      leadsHere,
      canOrder: job !== null,
      wake: () => job?.wake(),
    }),
    jobs: job ? [job] : [],
    tls:
      config.httpsPort === null || contexts === null
        ? null
        : { port: config.httpsPort, options: serverOptions(identity, contexts) },
    strictTransport: async (host) => contexts?.strictTransport(host) ?? null,
    certificateActive: async (host) => contexts?.certificateActive(host) ?? false,
    async domainDeleted({ id }) {
      for (const host of await certificates.removeDomain(id)) contexts?.changed(host)
    },
    faults: () => certificateFaults(certificates, clock.now()),
    endingSoon: () => endingCertificates(certificates, clock.now()),
  }
}

/** Whether DNS leads a tracking host to this service. */
function leadsHereBy({ config, resolver, clock, allow }: Core, ownHosts: OwnHosts): LeadsHere {
  const { spfIncludeHost } = config.dnsTargets
  return async (domain, host) => {
    // A domain from before such names were refused, or a name that became the service's later.
    if (ownHosts.has(host)) return 'no'
    const asked = { ...domain, webPrefix: host.slice(0, host.indexOf('.')) }
    const wanted = wantedRecords(asked, config.dnsTargets).find(({ purpose }) => purpose === 'tracking')
    if (!wanted) return 'no'
    const check = await lookUp({ resolver, clock, allow, spfIncludeHost }, wanted, undefined)
    return check.valid ? 'yes' : check.answered ? 'no' : 'unanswered'
  }
}

/** Null: no authority is configured. */
function jobOf(
  { config, store, sealer, domains, clock, log, random }: Core,
  certificates: CertificateStore,
  { changed }: TlsContexts,
  leadsHere: LeadsHere,
): Job | null {
  if (config.acme === null) return null
  const accounts = createAcmeAccounts(store, sealer, config.acme.email)
  const issuer = createIssuer({ directory: config.acme.directory, accounts, clock })
  return createCertificateJob({ certificates, issuer, domains, leadsHere, changed, clock, log, random })
}

function serverOptions(
  identity: Parameters<typeof tlsIdentityFiles>[0],
  { contextFor }: TlsContexts,
): ServerOptions {
  const { certificateFile, keyFile } = tlsIdentityFiles(identity)
  return {
    ...MODERN_TLS,
    // For clients that name no host; all others are looked up by name.
    cert: readFileSync(certificateFile),
    key: readFileSync(keyFile),
    SNICallback: (name, done) => void contextFor(name).then((context) => done(null, context)),
  }
}
