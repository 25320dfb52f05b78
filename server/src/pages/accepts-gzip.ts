/** Whether whoever asks can read gzip: named, and not by a quality of 0. */
export function acceptsGzip(header: string | undefined): boolean {
  return (header ?? '')
    .split(',', 20)
    .some((one) => /^\s*(?:gzip|\*)\s*(?:;\s*q\s*=\s*(?:1(?:\.0*)?|0?\.\d*[1-9]\d*)\s*)?$/i.test(one))
}
