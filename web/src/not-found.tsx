import { Anchor, Text, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'

export function NotFound() {
  return (
    <div className="centered">
      <div className="centered-card">
        <Title order={1} size="h3">
          There is no such page
        </Title>
        <Text mt="xs">
          <Anchor renderRoot={(props) => <Link {...props} to="/" />}>Go to the inbox</Anchor>
        </Text>
      </div>
    </div>
  )
}
