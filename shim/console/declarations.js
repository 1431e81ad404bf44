export const show = () => 'later'
