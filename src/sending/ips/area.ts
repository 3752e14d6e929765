/**
 * Addresses that mail is sent from: whose they are, which one a delivery leaves from, pools of them, and their warm-up.
 * Below the area of messages, which sends from them.
 */
import type { Area } from '../../area.ts'
import { hostAddresses } from '../../base/net/host-addresses.ts'
import type { Core } from '../../core.ts'
import { createEgress, type Egress } from '../../mail/deliver/connect/egress.ts'
import type { ShapingTable } from '../../mail/deliver/shaping/shaping-table.ts'
import { createJob } from '../../platform/jobs/job.ts'
import type { NodeReport, Nodes } from '../../platform/nodes/node.ts'
import type { Figures } from '../../watching/metrics/figures.ts'
import { type Blocks, createBlocks } from './blocks/blocks.ts'
import { createAddressChecks } from './checks.ts'
import { createDomainAddresses } from './domains/domain-addresses.ts'
import { domainIpRoutes } from './domains/domain-routes.ts'
import type { KnownAddresses } from './known-addresses.ts'
import { operatorRoutes } from './operator-routes.ts'
import { delegationRoutes } from './pools/delegation-routes.ts'
import { createDelegations } from './pools/delegations.ts'
import { createPools } from './pools/pools.ts'
import { poolRoutes } from './pools/routes.ts'
import { createAddressRequests } from './requests.ts'
import { ipRoutes } from './routes.ts'
import { createSources, type Sources } from './source-addresses.ts'
import { accountRemoval } from './tasks/account-removal.ts'
import { createIpTasks } from './tasks/tasks.ts'
import { createAllowances, OTHERS, type WarmupAllowances } from './warmup/allowances.ts'
import { warmupRoutes } from './warmup/routes.ts'
import { createWarmups, type Warmups } from './warmup/warmups.ts'

export interface IpsArea extends Area {
  sources: Sources
  allowances: WarmupAllowances
  assigned: Warmups['assigned']
  blocks: Blocks
  egress: Egress
}

/** A change in another process takes effect after at most this time. */
const REFRESH_MS = 2_000

interface IpsUses {
  known: KnownAddresses
  figures: Figures
  shaping(): ShapingTable
}

export function ipsArea(core: Core, uses: IpsUses): IpsArea {
  const { config, store, domains, accounts, clock, firstAccountId, nodes } = core
  const { known, shaping } = uses
  const plan = config.warmupPlan
  const allowances = createAllowances({
    ...{ store, clock, plan, book: known.book },
    providerOf: (site) => (shaping().isNamed(site) ? site : OTHERS),
  })
  const blocks = createBlocks({ ...core, known, shaping })
  const warmups = createWarmups({ ...core, ...uses, plan })
  const common = { ...core, owner: core.leaseOwner, known, assigned: warmups.assigned }
  const tasks = createIpTasks(common)
  const egress = createEgress(config.sourceAddresses, clock)
  const sources = createSources({
    book: known.book,
    domains,
    hostAddresses: hostAddresses(),
    isConfigured: config.sourceAddresses.length > 0,
    firstAccountId,
    ...(store.kind === 'postgres' && {
      othersHave: addressesOfOthers(nodes),
      isBound: (ip: string) => nodes.addresses.includes(ip),
    }),
    isDown: egress.isDown,
    allowance: allowances,
    blocks,
  })
  const requests = createAddressRequests({ ...common, warms: config.autoWarmup })
  const baseUrl = config.publicUrl
  return {
    sources,
    allowances,
    assigned: warmups.assigned,
    blocks,
    egress,
    operations: [
      ...ipRoutes({ store, known, tasks, requests }),
      ...domainIpRoutes({ known, domains, changes: createDomainAddresses(common) }),
      ...poolRoutes({ pools: createPools({ ...common, tasks }), baseUrl }),
      ...delegationRoutes(createDelegations({ ...common, tasks })),
      ...warmupRoutes({ warmups, plan, clock, baseUrl }),
      ...operatorRoutes({ store, known, accounts, blocks }),
    ],
    jobs: [
      createAddressChecks({ ...core, known, hostAddresses }),
      tasks.job,
      warmups.job,
      blocks.job,
      createJob({
        name: 'ip-refresh',
        everyMs: REFRESH_MS,
        // Each process has a book and allowances of its own.
        scope: 'process',
        async work() {
          await known.refresh()
          await allowances.flush()
        },
      }),
    ],
    async domainDeleted({ id }) {
      await store.commit([{ sql: 'DELETE FROM domain_ips WHERE domain_id = ?', values: [id] }])
    },
    accountDeleted: accountRemoval(known),
    async stop() {
      await blocks.written()
      await allowances.close()
    },
  }
}

/** Asked for each delivery: the set is made once for each beat. */
function addressesOfOthers(nodes: Nodes): (ip: string) => boolean {
  let seen: readonly NodeReport[] = []
  let addresses: ReadonlySet<string> = new Set()
  return (ip) => {
    const others = nodes.others()
    if (others !== seen) {
      seen = others
      const delivering = others.filter(
        ({ roles, state }) => roles.includes('delivery') && state === 'running',
      )
      addresses = new Set(delivering.flatMap((node) => node.addresses))
    }
    return addresses.has(ip)
  }
}
