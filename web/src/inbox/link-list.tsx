/** The links of a captured message, called on request. Calls POST /sendwright/v1/inbox/:id/link-check. */
import { Badge, Button } from '@mantine/core'
import { sendJson } from '../api.ts'
import type { LinkCheck } from '../api-types.ts'
import { Icon } from '../look/icons.tsx'
import { valueOrThrow } from '../queries.ts'
import { useMay } from '../session.ts'
import { useSending } from '../shared/forms/use-sending.ts'
import type { MessageLink } from '../shared/mail/safe-html.ts'
import { Failure } from '../shared/page/states.tsx'
import { LINK_TEXT as TEXT } from './text.ts'

const CHECK_MAX_MS = 60_000 // the service takes half of it at the most
const COLORS = { ok: 'teal', failed: 'red', 'not called': 'gray' } as const

type Checked = LinkCheck['items'][number]

/** Links open from here, not from the frame, with their real address visible. */
export function LinkList({ id, links }: { id: string; links: readonly MessageLink[] }) {
  const may = useMay({ area: 'domains', access: 'write' })
  const check = useSending({
    mutationFn: async () =>
      valueOrThrow(
        await sendJson(
          'POST',
          `/sendwright/v1/inbox/${encodeURIComponent(id)}/link-check`,
          undefined,
          CHECK_MAX_MS,
        ),
      ),
  })
  const images = check.data?.items.filter(({ kind }) => kind === 'image') ?? []
  const found = (url: string) => check.data?.items.find((item) => item.url === url || item.url === bare(url))
  return (
    <>
      {may && (
        <div className="inbox-link-check">
          <Button size="xs" variant="default" loading={check.isPending} onClick={() => check.mutate()}>
            {check.data ? TEXT.again : TEXT.check}
          </Button>
          <span className="dimmed">{TEXT.why}</span>
          {check.data !== undefined && check.data.left_out > 0 && (
            <span>{TEXT.leftOut(check.data.left_out)}</span>
          )}
        </div>
      )}
      {check.error && <Failure title={TEXT.failed} error={check.error} />}
      <ul className="part-list">
        {links.map(({ url, text }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the same link may stand in a message many times
          <li key={index}>
            <Icon name="link" size={18} />
            <span className="part-text">
              {text && <bdi>{text}</bdi>}
              <a className="part-url" href={url} target="_blank" rel="noopener noreferrer nofollow">
                {url}
              </a>
              <LinkState result={found(url)} />
            </span>
          </li>
        ))}
        {images.map((item) => (
          <li key={item.url}>
            <Icon name="file" size={18} />
            <span className="part-text">
              <span>{TEXT.image}</span>
              <span className="breakable">{item.url}</span>
              <LinkState result={item} />
            </span>
          </li>
        ))}
      </ul>
    </>
  )
}

/** The address as it stands in the message, where a browser's parser has added a slash. */
const bare = (url: string) => url.replace(/^(https?:\/\/[^/?#]+)\/$/, '$1')

function LinkState({ result }: { result: Checked | undefined }) {
  if (result === undefined) return null
  const { state, status, reason, redirects } = result
  return (
    <span className="inbox-link-state">
      <Badge variant="light" tt="none" color={COLORS[state]}>
        {TEXT.states[state]}
        {status !== null && ` · ${status}`}
      </Badge>
      {reason !== null && <span className="dimmed">{reason}</span>}
      {redirects.length > 0 && <span className="dimmed breakable">{TEXT.leadsTo(redirects)}</span>}
    </span>
  )
}
