/** The service's own checks of a message before it is sent (own-operations.md section 14). */
import { Badge, Button, Text } from '@mantine/core'
import { sendFiles } from '../../api.ts'
import type { Answers } from '../../api-types.ts'
import { countOf } from '../../base/format.ts'
import { Icon, type IconName } from '../../look/icons.tsx'
import { valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { useSending } from '../forms/use-sending.ts'
import { Panel } from '../page/page.tsx'
import { TEXT } from '../text.ts'

type CheckResult = Answers['POST /sendwright/v1/domains/{}/messages/check']
type Check = CheckResult['checks'][number]
type CheckState = CheckResult['state']

const LOOKS: Record<CheckState, { icon: IconName; color: string }> = {
  failed: { icon: 'cross', color: 'red' },
  warning: { icon: 'warning', color: 'orange' },
  ok: { icon: 'check', color: 'teal' },
}

interface MessageCheckProps {
  /** Domain to send from. */
  domain: string
  /** The fields of a send. */
  form: () => FormData
  /** Differs when the message does: a result of another message is marked. */
  version: string
  /** Nothing can be checked yet. */
  disabled: boolean
}

/** A button, and what the checks say: first what has to be changed. Nothing for roles that may not send. */
export function MessageCheck({ domain, form, version, disabled }: MessageCheckProps) {
  const may = useMay({ area: 'messages:send', access: 'write' })
  const checking = useSending({
    mutationFn: async (checked: string) => {
      const path = `/sendwright/v1/domains/${encodeURIComponent(domain)}/messages/check` as const
      return { checked, ...valueOrThrow(await sendFiles(path, form())) }
    },
  })
  if (!may) return null
  const result = checking.data
  return (
    <Panel
      title={TEXT.checks.title}
      className="message-check"
      beside={
        <Button
          size="xs"
          variant="default"
          loading={checking.isPending}
          disabled={disabled || domain === ''}
          onClick={() => checking.mutate(version)}
        >
          {result ? TEXT.checks.again : TEXT.checks.run}
        </Button>
      }
    >
      {checking.error ? (
        <Text size="sm" c="red" role="alert" className="breakable">
          {checking.error.message}
        </Text>
      ) : result ? (
        <Findings result={result} isOld={result.checked !== version} />
      ) : (
        <Text size="sm" c="dimmed">
          {TEXT.checks.lead}
        </Text>
      )}
    </Panel>
  )
}

function Findings({ result: { state, checks }, isOld }: { result: CheckResult; isOld: boolean }) {
  const of = (wanted: CheckState) => checks.filter((check) => check.state === wanted)
  const passed = of('ok')
  return (
    <>
      <div className="check-summary" role="status">
        <Badge variant="light" tt="none" fw={550} color={LOOKS[state].color}>
          {TEXT.checks.states[state]}
        </Badge>
        {isOld && <span className="dimmed">{TEXT.checks.isOld}</span>}
      </div>
      <CheckList checks={[...of('failed'), ...of('warning')]} />
      {passed.length > 0 && (
        <details>
          <summary>{TEXT.checks.passed(countOf(passed.length, 'check'))}</summary>
          <CheckList checks={passed} />
        </details>
      )}
    </>
  )
}

export const CheckList = ({ checks }: { checks: readonly Check[] }) =>
  checks.length > 0 && (
    <ul className="check-list">
      {checks.map(({ name, state, sentence }) => (
        <li key={name} className="check-row" data-state={state}>
          <Icon name={LOOKS[state].icon} size={16} />
          <span>
            <strong>{TEXT.checks.names[name] ?? name}</strong>{' '}
            <span className="visually-hidden">({TEXT.checks.states[state]})</span>
            <span className="breakable check-sentence">{sentence}</span>
          </span>
        </li>
      ))}
    </ul>
  )
