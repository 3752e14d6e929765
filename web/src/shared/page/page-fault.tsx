import type { ErrorComponentProps } from '@tanstack/react-router'
import { TEXT } from '../text.ts'
import { Page, PageHeader } from './page.tsx'
import { Failure } from './states.tsx'

/** In place of a page that threw an exception; the frame and its navigation stay. */
export function PageFault({ error, reset }: ErrorComponentProps) {
  return (
    <Page>
      <PageHeader title={TEXT.pageFault} lead={TEXT.pageFaultWhy} />
      <Failure
        title={TEXT.pageFaultDetail}
        error={error instanceof Error ? error : new Error(String(error))}
        retry={reset}
      />
    </Page>
  )
}
