/** What to do first, ticked off by what the service says; gone once all of it is done. */
import { Button, CloseButton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useRouter } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { CopyButton } from '../base/copy-button.tsx'
import { Icon } from '../look/icons.tsx'
import { useMay } from '../session.ts'
import { figure } from '../shared/charts/metrics-api.ts'
import { anyWebhookQuery, daysQuery, ownDomainsQuery } from './overview-queries.ts'
import { TEXT } from './text.ts'

const HIDDEN_NAME = 'sendwright-first-steps'
const STEPS = 4

export function FirstSteps() {
  const mayChange = useMay({ area: 'domains', access: 'write' })
  const [isHidden, setHidden] = useState(() => window.localStorage.getItem(HIDDEN_NAME) === 'hidden')
  const isAsked = mayChange && !isHidden
  const domains = useQuery({ ...ownDomainsQuery, enabled: isAsked })
  const days = useQuery({ ...daysQuery, enabled: isAsked })
  const first = domains.data?.newest
  const webhook = useQuery({ ...anyWebhookQuery(first), enabled: isAsked && domains.data !== undefined })
  if (!isAsked || domains.data === undefined || days.data === undefined || webhook.data === undefined)
    return null
  const hasSent = days.data.items.some(({ metrics }) => figure(metrics, 'accepted_count') > 0)
  const done = [first !== undefined, domains.data.active !== undefined, hasSent, webhook.data]
  const count = done.filter(Boolean).length
  if (count === STEPS) return null
  const hide = () => {
    window.localStorage.setItem(HIDDEN_NAME, 'hidden')
    setHidden(true)
  }
  return (
    <section className="panel first-steps" aria-label={TEXT.start}>
      <header className="panel-header">
        <h2>{TEXT.start}</h2>
        <span className="dimmed">{TEXT.done(count, STEPS)}</span>
        <span className="grow" />
        <CloseButton aria-label={TEXT.hide} title={TEXT.hide} onClick={hide} />
      </header>
      <ol>
        <Step {...TEXT.steps.domain} isDone={done[0] === true}>
          <Button size="xs" renderRoot={(props) => <Link {...props} to="/domains" search={{ add: 'yes' }} />}>
            {TEXT.addDomain}
          </Button>
        </Step>
        <Step {...TEXT.steps.records} isDone={done[1] === true}>
          {first !== undefined && (
            <Button
              size="xs"
              renderRoot={(props) => <Link {...props} to="/domains/$name" params={{ name: first }} />}
            >
              {TEXT.openRecords}
            </Button>
          )}
        </Step>
        <Step {...TEXT.steps.mail} isDone={done[2] === true}>
          <Command
            text={sendCommand(domains.data.sending ?? 'YOUR_DOMAIN')}
            what="the command that sends a mail"
          />
        </Step>
        <Step {...TEXT.steps.webhook} isDone={done[3] === true}>
          <WebhookStep />
        </Step>
      </ol>
    </section>
  )
}

function Step(props: { title: string; why: string; isDone: boolean; children: ReactNode }) {
  const { title, why, isDone, children } = props
  return (
    <li className="first-step" data-done={isDone || undefined}>
      <span className="step-mark">
        {isDone && <Icon name="check" size={15} />}
        <span className="visually-hidden">{isDone ? TEXT.isDone : TEXT.isOpen}</span>
      </span>
      <div className="step-words">
        <strong>{title}</strong>
        {!isDone && (
          <>
            <p className="dimmed">{why}</p>
            {children}
          </>
        )}
      </div>
    </li>
  )
}

/** The page of webhooks where there is one, else the call. */
function WebhookStep() {
  const { routesByPath } = useRouter()
  if ('/webhooks' in routesByPath)
    return (
      <Button size="xs" renderRoot={(props) => <Link {...props} to={'/webhooks' as '/'} />}>
        {TEXT.addWebhook}
      </Button>
    )
  return <Command text={webhookCommand()} what="the command that adds a webhook" />
}

function Command({ text, what }: { text: string; what: string }) {
  return (
    <div className="step-command">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways, also by keyboard */}
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={text} what={what} />
    </div>
  )
}

const sendCommand = (domain: string) =>
  [
    "curl --user 'api:YOUR_API_KEY'",
    `  ${window.location.origin}/v3/${domain}/messages`,
    `  -F from='Shop <shop@${domain}>'`,
    "  -F to='alice@example.com'",
    "  -F subject='It works'",
    "  -F text='The first message.'",
  ].join(' \\\n')

const webhookCommand = () =>
  [
    "curl --user 'api:YOUR_API_KEY'",
    `  ${window.location.origin}/v1/webhooks`,
    "  -F url='https://app.example.com/mail-events'",
    "  -F event_types='delivered,permanent_fail'",
  ].join(' \\\n')
