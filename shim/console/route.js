// Where one is: what stands after # in the address.

/** #/data/invoices?sort=-total, each part encoded. */
export function link(parts, query) {
  const said = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== '')
  const tail = said.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&')
  return `#/${parts.map(encodeURIComponent).join('/')}${tail ? `?${tail}` : ''}`
}

export function here() {
  const [path, tail = ''] = location.hash.replace(/^#\/?/, '').split('?')
  try {
    return {
      parts: path.split('/').filter((part) => part !== '').map(decodeURIComponent),
      query: Object.fromEntries(new URLSearchParams(tail.replace(/\+/g, '%2B')))
    }
  } catch {
    return { parts: [], query: {} }
  }
}

export function go(parts, query) {
  const to = link(parts, query)
  if (location.hash === to) window.dispatchEvent(new HashChangeEvent('hashchange'))
  else location.hash = to
}
