/** The limits of all sites, as they are looked up for each destination. Pure. */

import { readFileSync } from 'node:fs'
import { displayNameOf } from './provider-names.ts'
import {
  type AddressPreference,
  type BackOff,
  type GivenShape,
  type ReplyAction,
  type ReplyRule,
  readShapingFile,
  type ShapingFile,
} from './shaping-file.ts'

/** Limits of one lane: a source address and a site. */
export interface LaneLimits {
  /** Connections at a time. */
  connections: number
  /** Messages on one connection before a new one is opened. */
  messagesPerConnection: number
  /** Messages per second; null: as many as the connections can carry. */
  messagesPerSecond: number | null
  /** Absent: that of the shipped file's default. */
  backOff?: BackOff
}

/** A provider: mail hosts that share one set of limits. */
interface Site {
  /** Part of lane names. */
  site: string
  /** Host names; each stands for itself and all below it. */
  mx: readonly string[]
  limits: LaneLimits
  /** Null: none. Absent: the default's. */
  prefer?: AddressPreference | null | undefined
  /** As events and metrics show it, for a recipient's domain behind an MX host (metrics-logs.md section 2). */
  displayName(domain: string, mxHost: string): string
}

export interface ShapingTable {
  /** That of our file, then that of the operator's if there is one: "2026-11-24" or "2026-11-24+acme-3". */
  version: string
  /** For sites that no file names. */
  default: LaneLimits
  /** For sites that say nothing else; null: none. */
  prefer: AddressPreference | null
  sites: readonly Site[]
  /** The provider that runs an MX host, given in lower case without a final dot; null: unknown. The longest name counts. */
  siteOf(mxHost: string): Site | null
  /** Whether a file names the site. */
  isNamed(site: string): boolean
  /** The limits of a site by its name, known or not. */
  limitsOf(site: string): LaneLimits
}

let shippedFile: ShapingFile | null = null

/** shaping.json of this folder. */
export function readShipped(): ShapingFile {
  shippedFile ??= readShapingFile(readFileSync(new URL('shaping.json', import.meta.url), 'utf8'), null)
  return shippedFile
}

let shippedTable: ShapingTable | null = null

/** The table without an operator's file. */
export function shippedShaping(): ShapingTable {
  shippedTable ??= shapingTable(readShipped(), null)
  return shippedTable
}

/** Our file, with an operator's over it. */
export function shapingTable(ours: ShapingFile, theirs: ShapingFile | null): ShapingTable {
  // Our file's default says everything.
  const common = over(ours.default, theirs?.default) as WholeShape
  const taken = new Set([...(theirs?.providers.values() ?? [])].flatMap(({ mx = [] }) => mx))
  const names = new Set([...(theirs?.providers.keys() ?? []), ...ours.providers.keys()])
  const sites = [...names].map((site): Site => {
    const [own, given] = [ours.providers.get(site), theirs?.providers.get(site)]
    const shape = over(own, given)
    // An operator's file may give hosts of one of our sites to another.
    const mx = given?.mx ?? (own?.mx ?? []).filter((host) => !taken.has(host))
    const displayName =
      given?.name === undefined ? displayNameOf(site, shape.name ?? 'Other') : () => given.name as string
    return { site, mx, limits: limitsOf(common, shape), prefer: shape.prefer, displayName }
  })
  return tableOf(
    theirs === null ? ours.version : `${ours.version}+${theirs.version}`,
    limitsOf(common, {}),
    sites,
    common.prefer ?? null,
  )
}

/** What `given` says replaces what `own` says; its rules for replies are tried first. */
function over(own: GivenShape = {}, given: GivenShape = {}): GivenShape {
  return { ...own, ...given, replies: [...(given.replies ?? []), ...(own.replies ?? [])] }
}

/** A table of given sites, for drills and tests. */
export function tableOf(
  version: string,
  common: LaneLimits,
  sites: readonly Site[],
  prefer: AddressPreference | null = null,
): ShapingTable {
  const byHost = new Map(sites.flatMap((site) => site.mx.map((host) => [host, site] as const)))
  const byName = new Map(sites.map((site) => [site.site, site]))
  return {
    version,
    default: common,
    prefer,
    sites,
    siteOf(mxHost) {
      for (let name = mxHost; ; name = name.slice(name.indexOf('.') + 1)) {
        const site = byHost.get(name)
        if (site !== undefined) return site
        if (!name.includes('.')) return null
      }
    },
    isNamed: (name) => byName.has(name),
    limitsOf: (name) => byName.get(name)?.limits ?? common,
  }
}

type WholeShape = Required<Omit<GivenShape, 'name' | 'mx' | 'prefer'>> & Pick<GivenShape, 'prefer'>

function limitsOf(common: WholeShape, given: GivenShape): LaneLimits {
  const shape = { ...common, ...given }
  const replies = [...(given.replies ?? []), ...common.replies]
  return {
    connections: shape.connections,
    messagesPerConnection: shape.messagesPerConnection,
    messagesPerSecond: shape.messagesPerSecond,
    backOff: {
      recoveryMs: shape.recoveryMs,
      replies,
      blockedPauseMs: shape.blockedPauseMs,
      blockedPauseMaxMs: Math.max(shape.blockedPauseMs, shape.blockedPauseMaxMs),
    },
  }
}

export const backOffOf = ({ backOff }: Pick<LaneLimits, 'backOff'>): BackOff =>
  backOff ?? (shippedShaping().default.backOff as BackOff)

/** Characters of a reply that are read; a server may send 400,000. */
const REPLY_LENGTH_MAX = 1_024

/** What a reply that does not accept the message asks for: the first rule that knows it. Null: nothing. */
export function actionOf(rules: readonly ReplyRule[], code: number, text: string): ReplyAction | null {
  const read = text.slice(0, REPLY_LENGTH_MAX).toLowerCase()
  const replyClass = `${Math.floor(code / 100)}xx`
  for (const rule of rules) {
    if (rule.code !== 'any' && rule.code !== replyClass && rule.code !== String(code)) continue
    if (rule.patterns.length === 0 || rule.patterns.some((pattern) => pattern.isIn(read))) return rule.action
  }
  return null
}
