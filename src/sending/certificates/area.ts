/** Certificates of tracking hosts and of the service itself, and what the listeners need of them. */

import { readFileSync } from 'node:fs'
import type { ServerOptions } from 'node:https'
import type { SecureContext, SecureContextOptions } from 'node:tls'
import type { Area } from '../../area.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { TlsListening } from '../../platform/http/listening/listeners.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import { createIssuer } from '../../protocols/acme/order.ts'
import type { Resolver } from '../../protocols/dns/resolver.ts'
import { createTlsIdentity, tlsIdentityFiles } from '../../receiving/sessions/tls-identity.ts'
import { POLICY_LABEL, wantedRecords } from '../domains/dns/dns-records.ts'
import { lookUp } from '../domains/dns/lookups.ts'
import { type OwnHosts, ownHostsOf } from '../domains/dns/own-hosts.ts'
import { createAcmeAccounts } from './acme-account.ts'
import { createCertificateJob, isUsed } from './certificate-job.ts'
import { certificateRoutes } from './certificate-routes.ts'
import { type CertificateStore, createCertificateStore } from './certificate-store.ts'
import { certificateFaults, endingCertificates, type LeadsHere } from './certificates.ts'
import { policyCertificateJob, policyRoutes } from './hosted-policies.ts'
import { createOwnCertificates, type OwnCertificates } from './own-certificates.ts'
import { createTlsContexts, MODERN_TLS, type TlsContexts } from './tls-contexts.ts'

export interface CertificatesArea extends Area {
  /** The HTTPS listener; null: there is none. */
  tls: TlsListening | null
  /** Where plain HTTP sends the visitors of a page at that host; null: nowhere. */
  httpsOrigin(host: string): string | null
  /** The internet reaches this process directly, and its public address is https. */
  httpsOnly: boolean
  /** For STARTTLS: the certificate of SENDWRIGHT_HOSTNAME where it is ordered, else what `fallback` gives. */
  mailContexts(options: SecureContextOptions, fallback: () => SecureContext): () => SecureContext
  ownStates: OwnCertificates['states']
  strictTransport: TlsContexts['strictTransport']
  /** Whether https links to the host work now; false for every host without a listener of ours. */
  certificateActive(host: string): Promise<boolean>
  faults(): ReturnType<typeof certificateFaults>
  endingSoon(): ReturnType<typeof endingCertificates>
}

const OWN_EVERY_MS = MINUTE_MS
/** Announces that a name of the service has a new certificate. */
const OWN_TOPIC = 'own-certificate'

export async function certificatesArea(core: Core): Promise<CertificatesArea> {
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
  const own = createOwnCertificates({
    certificates,
    hosts: config.acme?.ownHosts ?? [],
    files: isServed ? config.smtpTls : null,
    clock,
    log,
  })
  const contexts = fallback && createTlsContexts({ certificates, fallback, ownHosts, own, clock, log })
  const leadsHere = leadsHereBy(core, ownHosts)
  const job = contexts && jobOf(core, { certificates, contexts, own, leadsHere })
  if (job) for (const host of own.hosts) await certificates.addOwn(host, Math.floor(clock.now()))
  await own.refresh()
  core.store.changes.follow(OWN_TOPIC, own.refresh)
  const refreshing = createJob({
    name: 'own-certificates',
    everyMs: OWN_EVERY_MS,
    scope: 'process',
    work: own.refresh,
  })
  const publicUrl = new URL(config.publicUrl)
  return {
    operations: [
      ...certificateRoutes({
        certificates,
        domains,
        clock,
        leadsHere,
        canOrder: job !== null,
        wake: () => job?.wake(),
      }),
      ...policyRoutes({ store: core.store, domains, certificates, targets: config.dnsTargets, clock }),
    ],
    jobs: [
      ...(job ? [job, policyCertificateJob({ ...core, certificates, orders: job })] : []),
      ...(isServed ? [refreshing] : []),
    ],
    tls:
      config.httpsPort === null || contexts === null
        ? null
        : {
            port: config.httpsPort,
            options: serverOptions(identity, contexts),
            follow: (apply) =>
              own.follow(publicUrl.hostname, ({ chain, key }) => apply({ ...MODERN_TLS, cert: chain, key })),
          },
    httpsOrigin(host) {
      const isOurs = publicUrl.protocol === 'https:' && host === publicUrl.hostname
      return isServed && isOurs && own.trustedUntil(host) !== null ? publicUrl.origin : null
    },
    httpsOnly: isServed && publicUrl.protocol === 'https:' && (config.acme?.ownHosts.length ?? 0) > 0,
    mailContexts: (options, otherwise) => own.contextsOf(config.hostname, options, otherwise),
    ownStates: own.states,
    strictTransport: async (host) => contexts?.strictTransport(host) ?? null,
    certificateActive: async (host) => contexts?.certificateActive(host) ?? false,
    async domainDeleted({ id }) {
      for (const host of await certificates.removeDomain(id)) contexts?.changed(host)
    },
    faults: () => certificateFaults(certificates, clock.now()),
    async endingSoon() {
      const ending = await endingCertificates(certificates, clock.now())
      // A former name of the service is not renewed.
      return ending.filter(({ host, isOwn }) => !isOwn || own.hosts.has(host))
    },
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
    if (host === `${POLICY_LABEL}.${domain.name}` && !isUsed(domain, POLICY_LABEL)) return 'no'
    const check = await lookUp({ resolver, clock, allow, spfIncludeHost }, wanted, undefined)
    return check.valid ? 'yes' : check.answered ? 'no' : 'unanswered'
  }
}

/** Null: no authority is configured. */
function jobOf(
  { config, store, sealer, domains, resolver, clock, log, random }: Core,
  parts: {
    certificates: CertificateStore
    contexts: TlsContexts
    own: OwnCertificates
    leadsHere: LeadsHere
  },
): Job | null {
  const { certificates, contexts, own, leadsHere } = parts
  if (config.acme === null) return null
  const accounts = createAcmeAccounts(store, sealer, config.acme.email)
  const issuer = createIssuer({ directory: config.acme.directory, accounts, clock })
  return createCertificateJob({
    ...{ certificates, issuer, domains, leadsHere, clock, log, random },
    ownHosts: own.hosts,
    ownHostFault: (host) => ownHostFault(resolver, host),
    changed(host) {
      contexts.changed(host)
      if (!own.hosts.has(host)) return
      void own.refresh()
      store.changes.hint(OWN_TOPIC, host)
    },
  })
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

/** The authority finds the host by its addresses, so an order without one only costs an attempt. */
async function ownHostFault(resolver: Resolver, host: string): Promise<string | null> {
  const answers = await Promise.all([resolver.query(host, 'A', FRESH), resolver.query(host, 'AAAA', FRESH)])
  const hasNone = answers.every(({ kind }) => kind === 'nodata' || kind === 'nxdomain')
  return hasNone
    ? `DNS has no address of ${host}: publish an A record with the public address of this server.`
    : null
}

const FRESH = { fresh: true } as const
