/** How a subaccount stands: what is stopped and why, with its release, and the figures that it is judged by. */
import { Alert, Group, Skeleton, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { ActionButton } from '../../shared/forms/action-button.tsx'
import { Panel } from '../../shared/page/page.tsx'
import { Failure } from '../../shared/page/states.tsx'
import { releaseStanding, STANDING_KEY, standingQuery } from '../../shared/standing-api.ts'
import { Time } from '../../shared/time.tsx'
import { STANDING_TEXT as TEXT } from './text.ts'

export function StandingPanel({ accountId }: { accountId: string }) {
  const { data, error, refetch } = useQuery(standingQuery(accountId))
  if (error && !data) return <Failure title={TEXT.title} error={error} retry={refetch} />
  if (!data)
    return (
      <Panel title={TEXT.title}>
        <Skeleton height={42} />
      </Panel>
    )
  const { figures, policy, stopped, daily_budget: budget } = data
  return (
    <Panel title={TEXT.title}>
      {stopped.map(({ domain, state, reason, until }) => (
        <Alert key={domain ?? ''} color="orange" title={TEXT.states[state](domain ?? TEXT.account)} mb="sm">
          <Text size="sm" className="breakable">
            {reason}. {TEXT.until} <Time at={until} />.
          </Text>
          <Group mt="xs">
            <ActionButton
              label={TEXT.release}
              name={TEXT.releaseOf(domain ?? TEXT.account)}
              run={() => releaseStanding(accountId, domain)}
              done={TEXT.released(domain ?? TEXT.account)}
              changes={STANDING_KEY}
              ask={{ title: TEXT.releaseTitle, consequence: TEXT.releaseWhy }}
            />
          </Group>
        </Alert>
      ))}
      <Text size="sm">
        {TEXT.figures(figures.sent, figures.bounced, figures.complained, figures.spam_trap_hits)}
      </Text>
      {budget && <Text size="sm">{TEXT.budget(budget.used, budget.limit)}</Text>}
      <Text size="sm" c="dimmed">
        {TEXT.policies[policy.policy]}
      </Text>
    </Panel>
  )
}
