import { Button, SegmentedControl, Switch } from '@mantine/core'
import { useMemo, useState } from 'react'
import { countOf } from '../../base/format.ts'
import { Icon } from '../../look/icons.tsx'
import { type InlinePart, useInlineImages } from './inline-images.ts'
import { frameDocument, type HtmlContent } from './safe-html.ts'
import './mail-html.css'

const WIDTHS = [
  { value: 'full', label: 'Full width' },
  { value: 'desk', label: 'Desk' },
  { value: 'phone', label: 'Phone' },
]

/** The HTML of somebody's mail in a sandboxed frame (safe-html.ts). `files`: what it may show by content-id. */
export function MailHtml({ files, content }: { files: readonly InlinePart[]; content: HtmlContent }) {
  const [remoteShown, setRemoteShown] = useState(false)
  const [width, setWidth] = useState('full')
  const [isDark, setDark] = useState(false)
  const images = useInlineImages(files, content.contentIds)
  const srcDoc = useMemo(
    () => images && frameDocument(content, images, remoteShown, isDark ? 'dark' : 'light'),
    [content, images, remoteShown, isDark],
  )
  return (
    <div className="preview">
      <div className="preview-bar">
        {content.remoteImages > 0 && !remoteShown && (
          <div className="preview-notice" role="status">
            <Icon name="shield" size={16} />
            <span>{countOf(content.remoteImages, 'remote image')} blocked</span>
            <Button
              size="compact-xs"
              variant="light"
              title="Loading them tells their servers that this message was looked at"
              onClick={() => setRemoteShown(true)}
            >
              Load
            </Button>
          </div>
        )}
        <span className="grow" />
        <Switch
          size="xs"
          label="Dark"
          title="As programs in dark colours show it, by the message's own rules for them"
          checked={isDark}
          onChange={(event) => setDark(event.currentTarget.checked)}
        />
        <SegmentedControl
          className="preview-widths"
          size="xs"
          data={WIDTHS}
          value={width}
          onChange={setWidth}
          aria-label="Width of the preview"
        />
      </div>
      <div className="preview-stage">
        {/* Another key is another frame: a policy cannot be widened in a document that has loaded. */}
        <iframe
          key={String(remoteShown)}
          className="preview-frame"
          data-width={width}
          data-dark={isDark || undefined}
          title="The message as HTML"
          sandbox=""
          referrerPolicy="no-referrer"
          srcDoc={srcDoc ?? ''}
        />
      </div>
    </div>
  )
}
