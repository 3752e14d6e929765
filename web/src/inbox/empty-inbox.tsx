import { Code, Text } from '@mantine/core'
import { CopyButton } from '../base/copy-button.tsx'
import { Icon } from '../look/icons.tsx'
import { useChosenDomain } from '../shared/forms/domain-choice.tsx'

/** A command for a first message, with this page's address and a domain that may send. */
export function EmptyInbox() {
  const example = sendExample(window.location.origin, useChosenDomain(undefined) || 'YOUR_DOMAIN')
  return (
    <div className="notice notice-start">
      <span className="notice-icon">
        <Icon name="arrowIn" size={26} />
      </span>
      <Text fw={600} mt="sm">
        No mail yet
      </Text>
      <Text size="sm" c="dimmed" mt={4}>
        Mail that your applications send through Sendwright lands here, seconds after they send it. Try it:
      </Text>
      <div className="example">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways, also by keyboard */}
        <pre tabIndex={0}>{example}</pre>
        <CopyButton text={example} what="the example" />
      </div>
      <Text size="sm" c="dimmed">
        In place of <Code>YOUR_API_KEY</Code> put the API key that Sendwright printed at its first start, or
        any other key with the role admin, developer or sending.
      </Text>
    </div>
  )
}

const sendExample = (origin: string, domain: string) =>
  [
    "curl --user 'api:YOUR_API_KEY'",
    `  ${origin}/v3/${domain}/messages`,
    `  -F from='Shop <shop@${domain}>'`,
    "  -F to='alice@example.com'",
    "  -F subject='It works'",
    "  -F text='The first message.'",
  ].join(' \\\n')
