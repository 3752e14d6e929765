import { Skeleton } from '@mantine/core'
import { Page } from './page.tsx'

/** Shown while the code of a page is loaded: heading and text take their space at once. */
export function LoadingPage() {
  return (
    <Page>
      <div role="status" aria-label="Loading">
        <Skeleton height={28} width="34%" />
        <Skeleton height={16} width="58%" mt={18} />
        <Skeleton height={260} mt={24} radius="lg" />
      </div>
    </Page>
  )
}
