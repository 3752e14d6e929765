import { actingFor } from '../acting.ts'
import { saveFile } from '../api.ts'
import { notify } from './page/notices.tsx'

/** Properties of a link that downloads `path` as `name`; acting for a subaccount, the request gets the header it needs. */
export const downloadLink = (path: string, name: string) => ({
  href: path,
  download: name,
  ...(actingFor !== undefined && {
    onClick: (event: { preventDefault(): void }) => {
      event.preventDefault()
      void saveFile(path, name).then((answer) => {
        if (!answer.ok) notify({ text: answer.failure.message, tone: 'bad' })
      })
    },
  }),
})
