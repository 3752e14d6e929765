/**
 * One attempt of a webhook: request, answer, next try, and sending it again. Calls /sendwright/v1/webhooks/attempts/:id.
 */
import { Button, Skeleton, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { CopyButton } from '../base/copy-button.tsx'
import { Icon } from '../look/icons.tsx'
import { useMay } from '../session.ts'
import { Copyable } from '../shared/copyable.tsx'
import { useSending } from '../shared/forms/use-sending.ts'
import { notify } from '../shared/page/notices.tsx'
import { Page, PageHeader, Panel } from '../shared/page/page.tsx'
import { Failure } from '../shared/page/states.tsx'
import { Time } from '../shared/time.tsx'
import { StatusBadge } from './attempts-page.tsx'
import { eventWords, ATTEMPT_TEXT as TEXT } from './text.ts'
import { attemptQuery, replayAttempt, WEBHOOKS_KEY } from './webhooks-api.ts'
import './webhooks.css'

const route = getRouteApi('/webhooks/attempts/$id')

export default function AttemptPage() {
  const { id } = route.useParams()
  const mayReplay = useMay({ area: 'domains', access: 'write' })
  const queries = useQueryClient()
  const { data, error, refetch } = useQuery(attemptQuery(id))
  const replay = useSending({
    mutationFn: () => replayAttempt(id),
    onSuccess() {
      notify({ text: TEXT.replayed })
      void queries.invalidateQueries({ queryKey: [WEBHOOKS_KEY] })
    },
  })
  const body = data?.['event-data'] && JSON.stringify({ 'event-data': data['event-data'] }, null, 2)
  return (
    <Page>
      <PageHeader
        title={data ? eventWords(data.event) : TEXT.oneTitle}
        beside={data && <StatusBadge status={data.status} />}
        back={{ to: '/webhooks/attempts', label: TEXT.title }}
        actions={
          mayReplay &&
          data && (
            <Button
              leftSection={<Icon name="refresh" size={16} />}
              loading={replay.isPending}
              onClick={() => replay.mutate()}
            >
              {TEXT.replay}
            </Button>
          )
        }
      />
      {error && <Failure title={TEXT.oneTitle} error={error} retry={refetch} />}
      {replay.error && <Failure title={TEXT.replay} error={replay.error} />}
      {data === undefined && !error && <Skeleton height={180} />}
      {data && (
        <>
          <Panel>
            <dl className="attempt-figures">
              <Figure label={TEXT.url}>{data.url}</Figure>
              <Figure label={TEXT.domain}>{data.domain}</Figure>
              <Figure label={TEXT.answer}>{data.error ?? data.status_code}</Figure>
              <Figure label={TEXT.took}>{TEXT.milliseconds(data.duration_ms)}</Figure>
              <Figure label={TEXT.number}>{data.attempt}</Figure>
              <Figure label={TEXT.when}>
                <Time at={data.created_at} />
              </Figure>
              {data.next_attempt_at && (
                <Figure label={TEXT.next}>
                  <Time at={data.next_attempt_at} />
                </Figure>
              )}
              <Figure label={TEXT.eventId}>
                <Copyable text={data.event_id} what={TEXT.eventId.toLowerCase()} />
              </Figure>
            </dl>
          </Panel>
          <Panel title={TEXT.response}>
            {data.response === '' ? (
              <Text size="sm">{TEXT.noResponse}</Text>
            ) : (
              <pre className="attempt-text">{data.response}</pre>
            )}
          </Panel>
          <Panel title={TEXT.body} beside={body && <CopyButton text={body} what={TEXT.bodyName} />}>
            {body ? (
              <>
                <Text size="sm" c="dimmed" mb="xs">
                  {TEXT.bodyWhy}
                </Text>
                <pre className="attempt-text">{body}</pre>
              </>
            ) : (
              <Text size="sm">{TEXT.gone}</Text>
            )}
          </Panel>
        </>
      )}
    </Page>
  )
}

const Figure = ({ label, children }: { label: string; children: ReactNode }) => (
  <div>
    <dt>{label}</dt>
    <dd className="breakable">{children}</dd>
  </div>
)
