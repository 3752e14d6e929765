/** What a list or a page shows when it has nothing else to show. */
import { Alert, Button, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { Icon, type IconName } from '../../look/icons.tsx'
import { TEXT } from '../text.ts'

/** A failed request: the server's own sentence, and another attempt. */
export function Failure(props: { title: string; error: Error; retry?: () => unknown }) {
  const { title, error, retry } = props
  return (
    <Alert color="red" title={title} role="alert">
      <Text size="sm" className="breakable">
        {error.message}
      </Text>
      {retry && (
        <Button mt="sm" size="xs" variant="default" onClick={() => void retry()}>
          {TEXT.tryAgain}
        </Button>
      )}
    </Alert>
  )
}

/** Nothing is here: says why, and what to do about it. */
export function EmptyState(props: {
  icon?: IconName
  title: string
  children?: ReactNode
  action?: ReactNode
}) {
  const { icon, title, children, action } = props
  return (
    <div className="empty-state">
      {icon && (
        <span className="empty-icon">
          <Icon name={icon} size={26} />
        </span>
      )}
      <p className="empty-title">{title}</p>
      {children && <div className="empty-words">{children}</div>}
      {action && <div className="empty-action">{action}</div>}
    </div>
  )
}
