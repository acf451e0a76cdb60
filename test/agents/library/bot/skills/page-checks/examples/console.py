print('look')
