/** Certificates near their end: those of tracking hosts and of the service itself, and the file of the listeners. */
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { DAY_MS, HOUR_MS } from '../../../base/time/durations.ts'
import type { Config } from '../../../platform/config/config.ts'
import type { CertificatesArea } from '../../../sending/certificates/area.ts'
import { ENDS_SOON_MS, type EndingCertificate } from '../../../sending/certificates/certificates.ts'
import type { OwnCheck } from './own-check.ts'

export function certificateEndsCheck(
  { endingSoon }: Pick<CertificatesArea, 'endingSoon'>,
  { smtpTls, hostname }: Pick<Config, 'smtpTls' | 'hostname'>,
): OwnCheck {
  /** That of the configured file, if it ends soon. */
  async function ofListeners(now: number): Promise<EndingCertificate[]> {
    if (smtpTls === null) return []
    const { validTo } = new X509Certificate(await readFile(smtpTls.certificateFile))
    const expiresAt = Date.parse(validTo)
    return expiresAt <= now + ENDS_SOON_MS ? [{ host: hostname, expiresAt, error: null, isOwn: true }] : []
  }

  return {
    name: 'certificate-ends',
    description: 'A certificate ends soon and was not renewed.',
    metric: 'certificate_days_left',
    comparator: '<=',
    limit: String(ENDS_SOON_MS / DAY_MS),
    dimension: 'host',
    everyMs: HOUR_MS,
    async read(now) {
      const own = (await ofListeners(now)).map((one) => ({
        ...one,
        where: `file ${smtpTls?.certificateFile}`,
      }))
      const ordered = (await endingSoon()).map((one) => ({
        ...one,
        where: one.isOwn ? 'this service' : 'tracking links',
      }))
      return [...own, ...ordered].map(({ host, expiresAt, error, where }) => {
        const end = new Date(expiresAt).toISOString()
        const renewed = `It is renewed by itself; ${error === null ? 'that has not happened' : `the last attempt failed: ${error}`}. See that the host still leads here and that port 80 is open.`
        const todo = {
          'tracking links': `${renewed} GET /v2/x509/${host}/status shows details.`,
          'this service': `${renewed} "sendwright doctor" shows details.`,
        }[where]
        return {
          value: host,
          figure: String(Math.floor((expiresAt - now) / DAY_MS)),
          since: expiresAt - ENDS_SOON_MS,
          advice: `The certificate of ${host} (${where}) ends at ${end}. ${todo ?? 'Renew it, and put the new files in the same place: they are read again by themselves.'}`,
        }
      })
    },
  }
}
